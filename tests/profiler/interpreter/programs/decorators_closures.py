"""Decorators with and without arguments, partial application, currying, registries."""

import functools
import time
import types

r = []


def trace(function=None, *, prefix="call"):
    if function is None:
        return functools.partial(trace, prefix=prefix)

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        r.append((prefix, function.__name__, args, tuple(sorted(kwargs.items()))))
        return function(*args, **kwargs)

    return wrapper


@trace
def plain(x):
    return x


@trace(prefix="p")
def given(x, y=2):
    return x + y


r += [plain(1), given(1, y=5), given.__name__]


class Registry(dict):
    def register(self, name=None):
        def add(target):
            self[name or target.__name__.lower()] = target
            return target

        return add if not callable(name) else (self.__setitem__(name.__name__, name), name)[1]

    def build(self, config):
        config = dict(config)
        return self[config.pop("type")](**config)


LAYERS = Registry()


@LAYERS.register()
class Conv:
    def __init__(self, k=3, **rest):
        self.k, self.rest = k, rest


@LAYERS.register("fc")
class Linear:
    def __init__(self, n):
        self.n = n


@LAYERS.register
def bare():
    return "bare"


r += [LAYERS.build({"type": "conv", "k": 5, "z": 1}).rest, LAYERS.build({"type": "fc", "n": 4}).n, sorted(LAYERS), bare()]


class Memo:
    def __init__(self, f):
        self.f, self.cache = f, {}
        functools.update_wrapper(self, f)

    def __call__(self, *args):
        if args not in self.cache:
            self.cache[args] = self.f(*args)
        return self.cache[args]

    def __get__(self, obj, cls=None):
        return self if obj is None else types.MethodType(self, obj)


class Uses:
    @Memo
    def slow(self, x):
        r.append("computed")
        return x * 2


u = Uses()
r += [u.slow(2), u.slow(2), Uses.slow.__name__]


def compose(*functions):
    return functools.reduce(lambda f, g: lambda x: g(f(x)), functions)


r.append(compose(lambda x: x + 1, lambda x: x * 2, str)(3))


def curry(f, n):
    def inner(*args):
        return f(*args) if len(args) >= n else lambda *more: inner(*args, *more)

    return inner


r.append(curry(lambda a, b, c: a + b + c, 3)(1)(2)(3))


def accumulate():
    total = 0
    history = []

    def add(x):
        nonlocal total
        total += x
        history.append(total)
        return history

    add.reset = lambda: history.clear()
    return add


acc = accumulate()
acc(1)
acc(2)
r.append(list(acc(3)))
acc.reset()
r.append(acc(4))


def with_class(cls):
    cls.added = lambda self: self.base * 2
    original = cls.__init__

    def __init__(self, *args, **kwargs):
        original(self, *args, **kwargs)
        self.extra = True

    cls.__init__ = __init__
    return cls


@with_class
class Decorated:
    def __init__(self, base):
        self.base = base


d = Decorated(4)
r.append([d.added(), d.extra, sorted(vars(d))])
Decorated.late = property(lambda self: self.base + 1)
r.append(d.late)
d.bound = types.MethodType(lambda self, k: self.base * k, d)
r.append(d.bound(3))
unbound = Decorated.added
r.append(unbound(d))
setattr(Decorated, "via_setattr", staticmethod(lambda: "static"))
r.append([d.via_setattr(), getattr(d, "nope", "default"), hasattr(d, "late")])
dispatch = {"a": lambda: 1, "b": plain}
r.append([dispatch["a"](), dispatch["b"](7)])


@functools.singledispatch
def show(x):
    return "object"


@show.register(int)
@show.register(float)
def _(x):
    return "number"


@show.register
def _(x: list):
    return "list"


r.append([show(1), show(1.5), show([]), show("s"), show.dispatch(int)(3)])


@functools.lru_cache
def cached(x, y=1):
    r.append(("miss", x, y))
    return x + y


r.append([cached(1), cached(1), cached(1, y=2)])
@(lambda f: lambda *a: ("wrapped", f(*a)))
def odd(x): return x
r.append(odd(1))
