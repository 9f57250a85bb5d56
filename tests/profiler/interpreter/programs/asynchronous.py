"""``async``: coroutines, async generators, context managers, gather."""

import asyncio
import contextlib

r = []


async def double(x):
    await asyncio.sleep(0)
    return x * 2


class Source:
    def __init__(self, n):
        self.n = n

    def __aiter__(self):
        return self

    async def __anext__(self):
        if self.n == 0:
            raise StopAsyncIteration
        self.n -= 1
        return self.n


class Manager:
    async def __aenter__(self):
        r.append("enter")
        return self

    async def __aexit__(self, *details):
        r.append("exit")


async def agen():
    for i in range(3):
        yield i


@contextlib.asynccontextmanager
async def managed():
    yield "managed"


async def main():
    r.append(await double(2))
    r.append([x async for x in Source(3)])
    r.append([x async for x in agen() if x])
    async with Manager() as m, managed() as value:
        r.append(value)
    r.append(await asyncio.gather(double(1), double(2)))
    async for x in agen():
        if x == 1:
            break
    r.append(x)
    task = asyncio.create_task(double(5))
    r.append(await task)
    return "done"


r.append(asyncio.run(main()))
