"""``match`` whose cases yield, and other places where a generator can stop."""


def events(items):
    for item in items:
        match item:
            case int(n) if n < 0:
                yield "negative"
            case int(n):
                got = yield n
                if got:
                    yield ("got", got)
            case [first, *rest]:
                yield first
                yield from rest
            case {"kind": kind, **others}:
                yield kind, sorted(others)
            case str() as text:
                return text
            case None:
                continue
            case _:
                yield "other"


def last():
    result = yield from events([1, [2, 3], "end", 9])
    yield ("returned", result)


r = [list(events([1, -2, [3, 4, 5], {"kind": "k", "b": 1, "a": 2}, None, 2.5]))]
r.append(list(last()))
g = events([7, 8])
r.append([next(g), g.send("hello"), next(g)])


def both_sides(flag):
    x = (yield "left") if flag else (yield "right")
    yield x


g = both_sides(False)
r.append([next(g), g.send(5)])


def shortcut():
    if (yield 1) and (yield 2):
        yield "both"
    yield "end"


g = shortcut()
r.append([next(g), g.send(False)])
g = shortcut()
r.append([next(g), g.send(True), g.send(True), next(g)])


def in_call():
    got = dict(a=(yield "a"), b=(yield "b"))
    yield got


g = in_call()
r.append([next(g), g.send(1), g.send(2)])


def raising():
    log = []
    while True:
        try:
            x = yield list(log)
            log.append(x)
        except ValueError as e:
            log.append(f"caught {e}")
        finally:
            log.append("f")


g = raising()
r.append([next(g), g.send(1), g.throw(ValueError("v"))])
g.close()


def closing(log):
    try:
        yield 1
        yield 2
    except GeneratorExit:
        log.append("exit")
        raise
    finally:
        log.append("finally")


log = []
g = closing(log)
next(g)
g.close()
r.append(log)


def delegating():
    try:
        value = yield from inner()
        yield ("value", value)
    except KeyError as e:
        yield ("outer", e.args)


def inner():
    try:
        x = yield "ready"
        return x * 2
    except ValueError:
        raise KeyError("from inner")


g = delegating()
r.append([next(g), g.send(21)])
g = delegating()
next(g)
r.append(g.throw(ValueError))

try:
    next(iter(()))
except StopIteration as stop:
    r.append(stop.value)


def returns():
    yield 1
    return "done"


g = returns()
next(g)
try:
    next(g)
except StopIteration as stop:
    r.append(stop.value)


def fib():
    a, b = 0, 1
    while True:
        yield a
        a, b = b, a + b


r.append([x for x, _ in zip(fib(), range(10))])


def with_yield():
    with manager(r):
        yield "inside"


class manager:
    def __init__(self, log):
        self.log = log

    def __enter__(self):
        self.log.append("enter")

    def __exit__(self, *details):
        self.log.append("leave")


r.append(list(with_yield()))
r.append([i for i in (yield_ for yield_ in "ab")])
