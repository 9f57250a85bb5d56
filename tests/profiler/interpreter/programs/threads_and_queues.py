"""Workers and queues, where the order does not depend on the scheduler."""

import queue
import threading

r = []


class Filler(threading.Thread):
    def __init__(self, items, size):
        super().__init__(daemon=True, name="filler")
        self.queue = queue.Queue(size)
        self.items = items

    def run(self):
        for item in self.items:
            self.queue.put(item * 2)
        self.queue.put(None)

    def __iter__(self):
        while True:
            item = self.queue.get()
            if item is None:
                return
            yield item


filler = Filler([1, 2, 3], 8)
filler.start()
r.append(list(filler))
filler.join()
r.append((filler.name, filler.daemon, filler.is_alive()))

done = threading.Event()
found = []


def work(first, second=0):
    found.append(first + second)
    done.set()


r.append(done.is_set())
worker = threading.Thread(target=work, args=(1,), kwargs={"second": 2})
worker.start()
worker.join()
done.wait()
r.append((found, done.is_set()))

stack = queue.LifoQueue()
order = queue.PriorityQueue()
for n in (3, 1, 2):
    stack.put(n)
    order.put(n)
r.append([stack.get() for _ in range(3)])
r.append([order.get() for _ in range(3)])
r.append((order.empty(), order.qsize()))

bounded = queue.Queue(maxsize=1)
bounded.put("a")
try:
    bounded.put_nowait("b")
except queue.Full:
    r.append("full")
try:
    queue.Queue().get_nowait()
except queue.Empty:
    r.append("empty")

own = threading.local()
own.value = 5
r.append(own.value)


class State(threading.local):
    count = 1


r.append(State().count)
