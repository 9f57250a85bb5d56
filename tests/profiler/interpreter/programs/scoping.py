"""Where names live."""

r = []
x = "global"


def reads():
    return x


def shadows():
    x = "local"

    def inner():
        return x

    return inner()


def nonlocal_chain():
    n = 0

    def a():
        nonlocal n
        n += 1

        def b():
            nonlocal n
            n += 10
            return n

        return b()

    return a(), n


def late():
    try:
        return later()
    except NameError as e:
        return type(e).__name__


def unbound():
    try:
        print(y)
        y = 1
    except UnboundLocalError as e:
        return "unbound"


r += [reads(), shadows(), nonlocal_chain(), late(), unbound()]


class Body:
    x = "class"
    y = [x for _ in range(1)]
    z = x

    def method(self):
        return x

    w = (lambda: x)()
    items = [1, 2, 3]
    doubled = [i * 2 for i in items]


r += [Body.y, Body.z, Body().method(), Body.w, Body.doubled]


def deleted():
    v = 1
    del v
    try:
        return v
    except NameError:
        return "gone"


r.append(deleted())
try:
    raise ValueError("e")
except ValueError as error:
    kept = error
try:
    error
except NameError:
    r.append("error name is deleted")
r.append(str(kept))

functions = {}
for i in range(3):

    def f(i=i):
        return i

    functions[i] = f
r.append([functions[k]() for k in functions])
r.append([(lambda: j)() for j in range(3)])
late_bound = [lambda: j for j in range(3)]
r.append([g() for g in late_bound])
if (n := len("four")) > 3:
    r.append(n)
r.append([y := 1, y**2])
r.append([last := v for v in range(3)] + [last])
while (n := n - 1) > 1:
    pass
r.append(n)
r.append(any((witness := v) > 1 for v in range(5)) and witness)


def make():
    global made
    made = "made"


make()
r.append(made)
r.append(sorted(k for k in vars().keys() if k in ("x", "made", "r")))


def locals_of(a, b=2):
    c = a + b
    return dict(locals())


r.append(locals_of(1))


def recursive(n):
    return 1 if n < 2 else n * recursive(n - 1)


r.append(recursive(10))


def counter():
    counter.calls += 1
    return counter.calls


counter.calls = 0
counter()
r.append(counter())


def outer(x):
    class Local:
        value = x

        def get(self):
            return x, self.value, __class__.__name__

    return Local


r.append(outer(5)().get())


def conditional(flag):
    if flag:
        import math as m
    else:

        class m:
            pi = 3

    return m.pi


r += [conditional(True), conditional(False)]
exec_result = {}
for a, (b, *c) in [(1, (2, 3, 4)), (5, "xyz")]:
    exec_result[a] = (b, c)
r.append(exec_result)
*head, tail = range(4)
r.append((head, tail))
first, *_, last = "abcde"
r.append(first + last)
[p, q], s = [1, 2], 3
r.append((p, q, s))
p, q = q, p
r.append((p, q))
i = 0
values = [0, 0, 0]
i, values[i] = 2, 9
r.append((i, values))
a = b = c = []
a.append(1)
r.append(c)
r.append((lambda *a, **k: (a, k))(1, *[2], x=3, **{"y": 4}))
r.append((lambda a, /, b, *, c: (a, b, c))(1, b=2, c=3))
