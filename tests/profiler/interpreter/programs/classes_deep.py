"""Classes: attributes, descriptors, hooks, order of bases, slots."""

import abc
import functools
from typing import Generic, NamedTuple, Protocol, TypeVar

r = []


class Meta(type):
    def __new__(mcs, name, bases, namespace, **options):
        cls = super().__new__(mcs, name, bases, namespace)
        cls.options = options
        return cls

    def __prepare__(name, bases, **options):
        return {"prepared": True}

    def __len__(cls):
        return 7

    def __contains__(cls, item):
        return item == "in"

    def __iter__(cls):
        return iter("abc")

    def __getitem__(cls, key):
        return (cls.__name__, key)

    @property
    def title(cls):
        return cls.__name__.title()


class a(metaclass=Meta, flag=1):
    pass


r.append([a.options, len(a), "in" in a, list(a), a["k"], a.title, type(a).__name__, a.prepared])


class Slots:
    __slots__ = ("x", "y")

    def __init__(self, x):
        self.x = x


s = Slots(1)
r.append([hasattr(s, "y"), s.x])


class Validated:
    def __set_name__(self, owner, name):
        self.name = "_" + name

    def __get__(self, instance, owner=None):
        return self if instance is None else getattr(instance, self.name, "unset")

    def __set__(self, instance, value):
        if value < 0:
            raise ValueError(value)
        setattr(instance, self.name, value)

    def __delete__(self, instance):
        delattr(instance, self.name)


class Holder:
    x = Validated()


h = Holder()
first = h.x
h.x = 5
r.append([first, h.x, h.__dict__])
del h.x
r.append(h.x)
try:
    h.x = -1
except ValueError as e:
    r.append(e.args)


class Base:
    registry = {}

    def __init_subclass__(cls, /, key=None, **kwargs):
        super().__init_subclass__(**kwargs)
        if key:
            Base.registry[key] = cls.__qualname__

    def __class_getitem__(cls, item):
        return f"{cls.__name__}[{item}]"


class One(Base, key="one"):
    class Inner(Base, key="inner"):
        pass


r.append([Base.registry, One[3], One.Inner.__qualname__])


class Temperature:
    def __init__(self, c):
        self.c = c

    @property
    def f(self):
        return self.c * 9 / 5 + 32

    @f.setter
    def f(self, value):
        self.c = (value - 32) * 5 / 9

    @f.deleter
    def f(self):
        self.c = None

    @classmethod
    def freezing(cls):
        return cls(0)

    __hash__ = None


t = Temperature.freezing()
t.f = 212
r.append([t.c, t.f])
del t.f
r.append(t.c)
try:
    hash(t)
except TypeError:
    r.append("unhashable")


class Abstract(abc.ABC):
    @property
    @abc.abstractmethod
    def name(self): ...

    @abc.abstractmethod
    def run(self): ...




class Concrete(Abstract):
    name = "concrete"

    def run(self):
        return self.name


r.append(Concrete().run())


class Shape(Protocol):
    def area(self) -> float: ...


T = TypeVar("T")


class Stack(Generic[T]):
    def __init__(self) -> None:
        self.items: list[T] = []

    def push(self, item: T) -> "Stack[T]":
        self.items.append(item)
        return self


r.append(Stack[int]().push(1).push(2).items)


class Point(NamedTuple):
    x: int
    y: int = 0

    def norm(self):
        return (self.x**2 + self.y**2) ** 0.5


p = Point(3, 4)
r.append([p, p.norm(), p._replace(x=0), p._asdict(), Point._fields, Point._field_defaults, *p])


class Multi:
    @functools.singledispatchmethod
    def show(self, value):
        return "other"

    @show.register
    def _(self, value: int):
        return "int"

    @show.register(str)
    def _(self, value):
        return "str"


r.append([Multi().show(1), Multi().show("s"), Multi().show(2.0)])


class Counter:
    def __init__(self):
        self.calls = {}

    def __getattribute__(self, name):
        if not name.startswith("_") and name != "calls":
            calls = object.__getattribute__(self, "calls")
            calls[name] = calls.get(name, 0) + 1
        return super().__getattribute__(name)

    def work(self):
        return 1


c = Counter()
c.work()
c.work()
r.append(c.calls)


class Chain:
    def __init__(self, path=""):
        self.path = path

    def __getattr__(self, name):
        return Chain(f"{self.path}/{name}")

    def __call__(self, *args, **kwargs):
        return self.path, args, kwargs

    def __str__(self):
        return self.path


r.append([str(Chain().users.list), Chain().a.b(1, k=2)])


class Ordered:
    def __init__(self, v):
        self.v = v

    def __lt__(self, other):
        return self.v < other.v

    def __repr__(self):
        return f"O({self.v})"


r.append(repr(sorted([Ordered(3), Ordered(1), Ordered(2)], reverse=True)))
r.append(repr(max([Ordered(3), Ordered(9)], key=lambda o: -o.v)))


@functools.total_ordering
class Version:
    def __init__(self, *parts):
        self.parts = parts

    def __eq__(self, other):
        return self.parts == other.parts

    def __lt__(self, other):
        return self.parts < other.parts


r.append([Version(1, 2) >= Version(1, 1), Version(1) <= Version(0), Version(1) != Version(1)])


class X:
    def who(self):
        return ["X"]


class Y(X):
    def who(self):
        return ["Y", *super().who()]


class Mixin:
    def who(self):
        return ["M", *super().who()]


class Z(Mixin, Y):
    pass


r.append([Z().who(), [k.__name__ for k in Z.mro()], issubclass(Z, X), Z.__bases__[0].__name__])
dynamic = type("Dynamic", (X,), {"extra": 5, "hello": lambda self: self.extra})
r.append([dynamic().hello(), dynamic.__name__, dynamic().who()])


class Bag:
    def __init__(self):
        self.d = {}

    def __getitem__(self, k):
        return self.d[k]

    def __setitem__(self, k, v):
        self.d[k] = v

    def __delitem__(self, k):
        del self.d[k]

    def __contains__(self, k):
        return k in self.d

    def __len__(self):
        return len(self.d)

    def __iter__(self):
        return iter(self.d)

    def __bool__(self):
        return True

    def __format__(self, spec):
        return f"<{spec}>"

    def __matmul__(self, o):
        return ("@", o)

    def __rsub__(self, o):
        return ("r-", o)

    def __invert__(self):
        return "~"

    def __enter__(self):
        return self

    def __exit__(self, *a):
        return True

    def __index__(self):
        return 2

    def __divmod__(self, o):
        return ("divmod", o)

    def __round__(self, n=None):
        return ("round", n)

    def __reversed__(self):
        return iter("zyx")


b = Bag()
b["a", 1] = 2
b["k"] = 3
del b["k"]
r.append([b["a", 1], ("a", 1) in b, len(b), list(b), bool(b), f"{b:spec}", b @ 1, 5 - b, ~b, [1, 2, 3][b]])
r.append([divmod(b, 2), round(b), round(b, 3), list(reversed(b)), hex(b)])
with b as inside:
    raise KeyError("swallowed")
r.append(inside is b)
