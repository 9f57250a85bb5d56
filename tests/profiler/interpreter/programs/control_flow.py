"""Loops with else, nested breaks, match, while, comprehension conditions."""

r = []


def search(items, wanted):
    for i, item in enumerate(items):
        if item == wanted:
            found = i
            break
    else:
        found = None
    return found


r += [search("abc", "b"), search("abc", "z")]
n, steps = 27, 0
while n != 1:
    n = n // 2 if n % 2 == 0 else 3 * n + 1
    steps += 1
    if steps > 1000:
        break
else:
    r.append(("collatz", steps))
primes = []
for candidate in range(2, 50):
    for p in primes:
        if candidate % p == 0:
            break
    else:
        primes.append(candidate)
r.append(primes)
for i in range(3):
    for j in range(3):
        if j == 1:
            continue
        if i == 2:
            break
        r.append((i, j))


def kind(value):
    match value:
        case True | False:
            return "bool"
        case 0:
            return "zero"
        case int() | float() if value < 0:
            return "negative"
        case int(x):
            return f"int {x}"
        case str("magic"):
            return "magic word"
        case str(s) if len(s) > 3:
            return f"long {s}"
        case []:
            return "empty"
        case [x]:
            return ("one", x)
        case [1, _, *others] | [2, *others]:
            return ("starts", others)
        case (x, y) if x == y:
            return "pair"
        case {"type": "point", "at": [x, y]}:
            return (x, y)
        case {"type": t, **rest} if rest:
            return (t, rest)
        case {}:
            return "mapping"
        case None:
            return None
        case Point(x=0, y=y):
            return f"on axis {y}"
        case Point(x, y):
            return x + y
        case Level.HIGH:
            return "high"
        case [[a, b], *_] as whole:
            return (a, b, len(whole))
        case set():
            return "set"
        case _:
            return type(value).__name__


class Point:
    __match_args__ = ("x", "y")

    def __init__(self, x, y):
        self.x, self.y = x, y


class Level:
    HIGH = object()


for value in (True, 0, -3, 5, -2.5, "magic", "longer", "ab", [], [9], [1, 2, 3, 4], [2], (4, 4), (4, 5), {"type": "point", "at": (1, 2)}, {"type": "t", "k": 1}, {"x": 1}, None, Point(0, 3), Point(1, 3), Level.HIGH, [[1, 2], 3, 4], {1}, b"x", 2.5, range(2)):
    r.append(kind(value))

total = 0
i = 0
while True:
    i += 1
    if i % 2:
        continue
    total += i
    if i >= 10:
        break
r.append(total)
queue = [1]
for item in queue:
    if item < 20:
        queue.append(item * 3)
r.append(queue)
it = iter(range(6))
r.append([(a, next(it, None)) for a in it])
r.append([x if x % 2 else -x for x in range(5)])
stack = [[1, [2, [3]]]]
flat = []
while stack:
    top = stack.pop()
    if isinstance(top, list):
        stack.extend(reversed(top))
    else:
        flat.append(top)
r.append(flat)
r.append(list(iter(lambda c=iter([1, 2, 0, 3]): next(c), 0)))


def hanoi(n, a="a", b="b", c="c"):
    if n == 0:
        return 0
    return hanoi(n - 1, a, c, b) + 1 + hanoi(n - 1, c, b, a)


r.append(hanoi(6))


def permutations(items):
    if len(items) <= 1:
        yield list(items)
        return
    for i, item in enumerate(items):
        for rest in permutations(items[:i] + items[i + 1 :]):
            yield [item, *rest]


r.append(list(permutations([1, 2, 3])))
if 1: r.append("one line"); r.append("two")
elif 2: pass
x = 3 if False else 4 if True else 5
r.append(x)
pass
...
lambda: (yield)
