"""``collections``, ``itertools``, ``functools``, ``heapq``, ``bisect``."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

from oarlock_profiler.core.interpreter import builtin_types, classes, operators
from oarlock_profiler.core.interpreter.builtin_types import TUPLE, TupleInstance
from oarlock_profiler.core.interpreter.descriptors import ClassMethod, Property, StaticMethod, TypeForm
from oarlock_profiler.core.interpreter.errors import OBJECT
from oarlock_profiler.core.interpreter.formatting import text
from oarlock_profiler.core.interpreter.iterators import HostIterator
from oarlock_profiler.core.interpreter.ordering import sort_items
from oarlock_profiler.core.interpreter.values import (
    MISSING,
    BoundMethod,
    Class,
    Context,
    Function,
    HostObject,
    Instance,
    Method,
    Native,
    Unknown,
    Value,
)
from oarlock_profiler.core.overlays.registry import entry, get, linearise, native_class, register

LIBRARIES = ("collections", "itertools", "functools", "heapq", "bisect", "weakref")

register("collections.OrderedDict", builtin_types.ORDERED_DICT)
register("collections.defaultdict", builtin_types.DEFAULT_DICT)
register("collections.Counter", builtin_types.COUNTER)
register("collections.deque", builtin_types.DEQUE)
register("collections.UserDict", builtin_types.DICT)
register("collections.UserList", builtin_types.LIST)


def _abstract(name: str, *hosts: str) -> None:
    """``collections.abc.Sequence`` and friends: a class that builtin containers count as instances of."""
    cls = Class(name, f"collections.abc.{name}", (OBJECT,), {})
    cls.mro = linearise(cls)
    wanted = set(hosts)

    def hook(_m: Any, kind: Value) -> Value:
        if not isinstance(kind, Class):
            return False
        if any(c.name in wanted and c.qualname.startswith(("builtins.", "collections.")) for c in kind.mro):
            return True
        needs = {
            "Iterable": "__iter__",
            "Callable": "__call__",
            "Sized": "__len__",
            "Container": "__contains__",
            "Hashable": "__hash__",
        }
        return name in needs and kind.lookup(needs[name]) is not MISSING

    cls.namespace["__subclasshook__"] = Native("__subclasshook__", hook)
    for module in ("collections.abc", "collections", "typing"):
        register(f"{module}.{name}", cls)


def _mapping_get(m: Any, self: Value, key: Value, default: Value = None) -> Value:
    found = operators.contains(m, self, key)
    return operators.getitem(m, self, key) if m.truth(found) is True else default


def _mapping_contains(m: Any, self: Value, key: Value) -> Value:
    return any(m.truth(operators.compare(m, "==", one, key)) is True for one in m.iterate(self).items)


def _mapping_update(m: Any, self: Value, other: Value = (), **more: Value) -> None:
    given = m.call(builtin_types.DICT, [other])
    if isinstance(given, dict):
        for key, value in {**given, **more}.items():
            operators.setitem(m, self, key, value)


def _mapping_pop(m: Any, self: Value, key: Value, default: Value = MISSING) -> Value:
    if m.truth(operators.contains(m, self, key)) is True:
        value = operators.getitem(m, self, key)
        operators.delitem(m, self, key)
        return value
    return m.fail("KeyError", "the key is not in the mapping") if default is MISSING else default


def _mapping_setdefault(m: Any, self: Value, key: Value, default: Value = None) -> Value:
    if m.truth(operators.contains(m, self, key)) is not True:
        operators.setitem(m, self, key, default)
    return operators.getitem(m, self, key)


def _mapping_clear(m: Any, self: Value) -> None:
    for key in m.listed(self):
        operators.delitem(m, self, key)


_MAPPING: dict[str, Callable[..., Value]] = {
    "get": _mapping_get,
    "__contains__": _mapping_contains,
    "keys": lambda m, self: m.listed(self),
    "values": lambda m, self: [operators.getitem(m, self, k) for k in m.listed(self)],
    "items": lambda m, self: [(k, operators.getitem(m, self, k)) for k in m.listed(self)],
}
_MUTABLE_MAPPING: dict[str, Callable[..., Value]] = {
    "update": _mapping_update, "pop": _mapping_pop, "setdefault": _mapping_setdefault,
    "clear": _mapping_clear,
}  # fmt: skip


def _sequence_index(m: Any, self: Value, item: Value) -> Value:
    for position, one in enumerate(m.iterate(self).items):
        if m.truth(operators.compare(m, "==", one, item)) is True:
            return position
    return m.fail("ValueError", "the item is not in the sequence")


_SEQUENCE: dict[str, Callable[..., Value]] = {"index": _sequence_index, "__contains__": _mapping_contains}


def _mixins(name: str, *tables: dict[str, Callable[..., Value]]) -> None:
    """What a class gets for deriving from ``collections.abc.NAME``."""
    for module in ("collections.abc", "collections", "typing"):
        cls = get(f"{module}.{name}")
        for table in tables:
            cls.namespace.update({key: Native(f"{name}.{key}", fn) for key, fn in table.items()})


_ALL = ("list", "tuple", "dict", "set", "frozenset", "str", "range", "bytes", "deque")
_abstract("Iterable", *_ALL, "iterator", "GeneratorType")
_abstract("Iterator", "iterator", "GeneratorType")
_abstract("Generator", "GeneratorType")
_abstract("Collection", *_ALL)
_abstract("Container", *_ALL)
_abstract("Sized", *_ALL)
_abstract("Sequence", "list", "tuple", "str", "range", "bytes")
_abstract("MutableSequence", "list", "deque")
_abstract("Mapping", "dict")
_abstract("MutableMapping", "dict")
_abstract("Set", "set", "frozenset")
_abstract("MutableSet", "set")
_abstract("Callable", "function")
_abstract("Hashable", "str", "int", "float", "tuple", "frozenset", "bytes")
for _name in (
    "Awaitable",
    "Coroutine",
    "AsyncIterator",
    "AsyncIterable",
    "AsyncGenerator",
    "Reversible",
    "ByteString",
    "KeysView",
    "ItemsView",
    "ValuesView",
):
    _abstract(_name)


@entry("collections.ChainMap")
def chain_map(m: Any, *maps: Value) -> Value:
    out: dict[Value, Value] = {}
    for one in reversed(maps):
        given = m.mapping(one)
        if not isinstance(given, Unknown):
            out.update(given)
    return out


_mixins("Mapping", _MAPPING)
_mixins("MutableMapping", _MAPPING, _MUTABLE_MAPPING)
_mixins("Sequence", _SEQUENCE)
_mixins("MutableSequence", _SEQUENCE)
_mixins("Set", {"__contains__": _mapping_contains})


# -- named tuples ----------------------------------------------------------------------------------------------------


class NamedTupleMeta(classes.Meta):
    """Calling the class makes the tuple from its fields."""

    def __init__(self, fields: tuple[str, ...], defaults: dict[str, Value]) -> None:
        self.fields = fields
        self.defaults = defaults

    def call(self, m: Any, cls: Class, args: list[Value], kwargs: dict[str, Value] | None) -> Value:
        new = cls.lookup("__new__")
        if isinstance(new, StaticMethod) and isinstance(new.function, Function):
            return m.call(new.function, [cls, *args], kwargs)
        return self.build(m, cls, args, kwargs or {})

    def build(self, m: Any, cls: Class, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        """The tuple."""
        values = dict(zip(self.fields, args, strict=False))
        values.update({k: v for k, v in kwargs.items() if k in self.fields})
        items = []
        for name in self.fields:
            if name in values:
                items.append(values[name])
            elif name in self.defaults:
                items.append(self.defaults[name])
            else:
                items.append(m.fail("TypeError", f"{cls.name} is not given its field {name!r}"))
        return TupleInstance(cls, items)


def named_tuple(
    m: Any, name: str, fields: tuple[str, ...], defaults: dict[str, Value], extra: dict[str, Value]
) -> Class:
    """The class of a named tuple."""
    namespace: dict[str, Value] = dict(extra)
    for index, field in enumerate(fields):
        namespace[field] = Property(Method(field, lambda m, self, _i=index: tuple.__getitem__(self, _i)))
    meta = NamedTupleMeta(fields, defaults)

    def shown(m: Any, self: Instance) -> Value:
        values = zip(fields, tuple.__iter__(cast("TupleInstance", self)), strict=True)
        return f"{self.cls.name}({', '.join(f'{n}={text(m, v, quote=True)}' for n, v in values)})"

    namespace.setdefault("__repr__", Method("__repr__", shown))
    namespace["_fields"] = fields
    namespace["__match_args__"] = fields
    namespace["_field_defaults"] = defaults
    namespace["_asdict"] = Method("_asdict", lambda _m, self: dict(zip(fields, tuple.__iter__(self), strict=True)))
    namespace["_replace"] = Method(
        "_replace",
        lambda m, self, **kw: meta.build(
            m, self.cls, [], {**dict(zip(fields, tuple.__iter__(self), strict=True)), **kw}
        ),
    )
    namespace["_make"] = ClassMethod(Native("_make", lambda m, cls, items: meta.build(m, cls, m.listed(items), {})))
    namespace["__new__"] = StaticMethod(Native("__new__", lambda m, cls, *args, **kw: meta.build(m, cls, args, kw)))
    cls = Class(name, name, (TUPLE,), namespace, None, where=m.where)
    cls.mro = linearise(cls)
    cls.meta = meta
    return cls


@entry("collections.namedtuple")
def namedtuple(
    m: Any, typename: Value, field_names: Value, *, rename: Value = False, defaults: Value = None, module: Value = None
) -> Value:
    fields = field_names
    if isinstance(fields, str):
        fields = fields.replace(",", " ").split()
    names = tuple(f for f in m.listed(fields) if isinstance(f, str))[:1000]
    given = m.listed(defaults) if defaults is not None else []
    return named_tuple(m, str(typename), names, dict(zip(names[len(names) - len(given) :], given, strict=False)), {})


class _TypedTuple(classes.Meta):
    """``class Point(NamedTuple): x: int = 0``."""

    def created(self, m: Any, cls: Class, keywords: dict[str, Value]) -> Value:
        fields = tuple(cls.namespace.get("__annotations__", {}))
        defaults = {f: cls.namespace[f] for f in fields if f in cls.namespace}
        kept = {k: v for k, v in cls.namespace.items() if k not in fields}
        made = named_tuple(m, cls.name, fields, defaults, kept)
        made.module = cls.module
        for value in kept.values():
            if isinstance(value, Function):
                value.owner = made
                cell = value.closure.cells.get("__class__")
                if cell is not None:
                    cell.value = made
        return made


NAMED_TUPLE = Class("NamedTuple", "typing.NamedTuple", (OBJECT,), {})
NAMED_TUPLE.mro = linearise(NAMED_TUPLE)
NAMED_TUPLE.meta = _TypedTuple()
NAMED_TUPLE.namespace["__new__"] = Native(
    "NamedTuple",
    lambda m, _cls, name, fields=(), **_kw: named_tuple(m, name, tuple(p[0] for p in m.listed(fields)), {}, {}),
)
register("typing.NamedTuple", NAMED_TUPLE)


# -- itertools -------------------------------------------------------------------------------------------------------


def _lazy(m: Any, make: Callable[..., Iterator[Value]], *sources: Value) -> HostIterator:
    iterations = [m.iterate(s) for s in sources]
    exact = all(i.exact for i in iterations)
    counts = [i.count for i in iterations if i.count is not None]
    return HostIterator(make(*(i.items for i in iterations)), exact, min(counts) if counts else None)


@entry("itertools.chain")
def chain(m: Any, *sources: Value) -> Value:
    return _chain(m, list(sources))


@entry("itertools.chain.from_iterable")
def chain_from(m: Any, sources: Value) -> Value:
    return _chain(m, m.listed(sources))


def _chain(m: Any, sources: list[Value]) -> HostIterator:
    iterations = [m.iterate(s) for s in sources]
    exact = all(i.exact for i in iterations)
    counts = [
        i.count if i.count is not None else len(i.items) if hasattr(i.items, "__len__") else None for i in iterations
    ]
    total = sum(c for c in counts if c is not None) if not exact and None not in counts else None
    return HostIterator(itertools.chain.from_iterable(i.items for i in iterations), exact, total)


@entry("itertools.islice")
def islice(m: Any, source: Value, *bounds: Value) -> Value:
    iteration = m.iterate(source)
    if not all(b is None or (isinstance(b, int) and b >= 0) for b in bounds):
        return HostIterator(iteration.items, False)
    if iteration.exact:
        return HostIterator(itertools.islice(iteration.items, *bounds))
    stop = bounds[0] if len(bounds) == 1 else bounds[1]
    counts = [c for c in (stop, iteration.count) if c is not None]
    return HostIterator(itertools.islice(iteration.items, *bounds), False, min(counts) if counts else None)


@entry("itertools.cycle")
def cycle(m: Any, source: Value) -> Value:
    def again() -> Iterator[Value]:
        while True:
            some = False
            for item in m.iterate(source).items:
                some = True
                m.spend()
                yield item
                del item
            if not some:
                return

    return HostIterator(again(), True)


@entry("itertools.count")
def count(m: Any, start: Value = 0, step: Value = 1) -> Value:
    return HostIterator(
        itertools.count(start, step)
        if isinstance(start, (int, float)) and isinstance(step, (int, float))
        else iter([start])
    )


@entry("itertools.repeat")
def repeat(m: Any, value: Value, times: Value = None) -> Value:
    return HostIterator(itertools.repeat(value, times) if isinstance(times, int) else itertools.repeat(value))


def _bounded(m: Any, name: str, items: Iterator[Value]) -> Value:
    def limited() -> Iterator[Value]:
        for item in items:
            m.spend()
            yield item

    return HostIterator(limited())


@entry("itertools.product")
def product(m: Any, *sources: Value, repeat: Value = 1) -> Value:
    pools = [m.listed(s) for s in sources]
    times = repeat if isinstance(repeat, int) else 1
    if len(pools) * times > 100:
        return m.unknown("a product of more than 100 sequences", hint="list")
    return _bounded(m, "product", itertools.product(*pools, repeat=times))


def _chosen(function: Callable[..., Iterator[Value]]) -> Callable[..., Value]:
    def call(m: Any, items: Value, r: Value = None) -> Value:
        listed = m.listed(items)
        return _bounded(m, "", function(listed, r) if r is not None else function(listed))

    return call


for _name in ("permutations", "combinations", "combinations_with_replacement"):
    register(f"itertools.{_name}", Native(f"itertools.{_name}", _chosen(getattr(itertools, _name))))


@entry("itertools.zip_longest")
def zip_longest(m: Any, *sources: Value, fillvalue: Value = None) -> Value:
    return _lazy(m, lambda *items: itertools.zip_longest(*items, fillvalue=fillvalue), *sources)


@entry("itertools.starmap")
def starmap(m: Any, function: Value, source: Value) -> Value:
    return _lazy(m, lambda items: (m.call(function, m.listed(i)) for i in items), source)


@entry("itertools.takewhile")
def takewhile(m: Any, test: Value, source: Value) -> Value:
    return _lazy(m, lambda items: itertools.takewhile(lambda i: m.truth(m.call(test, [i])) is not False, items), source)


@entry("itertools.dropwhile")
def dropwhile(m: Any, test: Value, source: Value) -> Value:
    return _lazy(m, lambda items: itertools.dropwhile(lambda i: m.truth(m.call(test, [i])) is True, items), source)


@entry("itertools.filterfalse")
def filterfalse(m: Any, test: Value, source: Value) -> Value:
    return _lazy(
        m, lambda items: (i for i in items if m.truth(i if test is None else m.call(test, [i])) is not True), source
    )


@entry("itertools.accumulate")
def accumulate(m: Any, source: Value, function: Value = None, *, initial: Value = MISSING) -> Value:
    def sums(items: Any) -> Iterator[Value]:
        total = initial
        if total is not MISSING:
            yield total
        for item in items:
            if total is MISSING:
                total = item
            else:
                total = operators.binary(m, "+", total, item) if function is None else m.call(function, [total, item])
            yield total

    return _lazy(m, sums, source)


@entry("itertools.groupby")
def groupby(m: Any, source: Value, key: Value = None) -> Value:
    groups: list[Value] = []
    for item in m.listed(source):
        mark = item if key is None else m.call(key, [item])
        if groups and m.truth(operators.compare(m, "==", groups[-1][0], mark)) is True:
            groups[-1][1].append(item)
        else:
            groups.append((mark, [item]))
    return iter(groups)


@entry("itertools.tee")
def tee(m: Any, source: Value, n: Value = 2) -> Value:
    items = m.listed(source)
    return tuple(HostIterator(items) for _ in range(n if isinstance(n, int) and n < 100 else 2))


@entry("itertools.pairwise")
def pairwise(m: Any, source: Value) -> Value:
    return _lazy(m, itertools.pairwise, source)


@entry("itertools.compress")
def compress(m: Any, data: Value, selectors: Value) -> Value:
    return [d for d, s in zip(m.listed(data), m.listed(selectors), strict=False) if m.truth(s) is not False]


# -- functools -------------------------------------------------------------------------------------------------------


class Partial(HostObject):
    """``functools.partial``."""

    def __init__(self, function: Value, args: tuple[Value, ...], kwargs: dict[str, Value]) -> None:
        self.function = function
        self.args = args
        self.kwargs = kwargs

    def py_type(self) -> str:
        return "functools.partial"

    def py_call(self, context: Any, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        return context.invoke(self.function, [*self.args, *args], {**self.kwargs, **kwargs})

    def py_getattr(self, context: Context, name: str) -> Value:
        if name == "__call__":
            return Native("partial.__call__", lambda m, *args, **kwargs: self.py_call(m, args, kwargs))
        return {"func": self.function, "args": self.args, "keywords": self.kwargs}.get(name, MISSING)


def _partial_new(m: Any, _cls: Value, function: Value, *args: Value, **kwargs: Value) -> Value:
    if isinstance(function, Partial):
        return Partial(function.function, (*function.args, *args), {**function.kwargs, **kwargs})
    return Partial(function, args, kwargs)


register("functools.partial", native_class("functools.partial", __new__=_partial_new))


class PartialMethod(HostObject):
    """``functools.partialmethod``: binds when read through an instance."""

    def __init__(self, function: Value, args: tuple[Value, ...], kwargs: dict[str, Value]) -> None:
        self.function = function
        self.args = args
        self.kwargs = kwargs

    def py_getattr(self, context: Context, name: str) -> Value:
        if name == "__get__":
            return Native(
                "__get__", lambda _m, obj, _cls=None: Partial(BoundMethod(self.function, obj), self.args, self.kwargs)
            )
        return MISSING


@entry("functools.partialmethod")
def partialmethod(m: Any, function: Value, *args: Value, **kwargs: Value) -> Value:
    return PartialMethod(function, args, kwargs)


@entry("functools.reduce")
def reduce(m: Any, function: Value, items: Value, initial: Value = MISSING) -> Value:
    total = initial
    for item in m.iterate(items).items:
        m.spend()
        total = item if total is MISSING else m.call(function, [total, item])
    return m.fail("TypeError", "reduce of nothing") if total is MISSING else total


@entry("functools.wraps")
def wraps(m: Any, wrapped: Value, *_args: Value, **_kw: Value) -> Value:
    return Native("functools.wraps", lambda m, wrapper: update_wrapper(m, wrapper, wrapped))


@entry("functools.update_wrapper")
def update_wrapper(m: Any, wrapper: Value, wrapped: Value, *_args: Value, **_kw: Value) -> Value:
    if isinstance(wrapper, Function):
        for name in ("__name__", "__qualname__", "__doc__", "__module__"):
            value = m.find(wrapped, name)
            if value is not MISSING:
                wrapper.attrs[name] = value
        if isinstance(wrapped, Function):
            wrapper.attrs.update({k: v for k, v in wrapped.attrs.items() if k not in wrapper.attrs})
        wrapper.attrs["__wrapped__"] = wrapped
    elif type(wrapper) is Instance:
        for name in ("__module__", "__name__", "__qualname__", "__doc__"):
            value = m.find(wrapped, name)
            if value is not MISSING:
                wrapper.attrs[name] = value
        wrapper.attrs["__wrapped__"] = wrapped
    return wrapper


class Cached(HostObject):
    """``lru_cache``: calls with equal plain arguments give the kept result (tensors are never kept)."""

    def __init__(self, function: Value, maxsize: Value = 128) -> None:
        self.function = function
        self.maxsize = maxsize
        self.kept: dict[Any, Value] = {}
        self.hits = self.misses = 0

    def clear(self) -> None:
        """Forget every result."""
        self.kept.clear()
        self.hits = self.misses = 0

    def py_type(self) -> str:
        return "functools._lru_cache_wrapper"

    def py_call(self, context: Any, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        plain = (int, float, str, bool, type(None), tuple, Class)
        if all(isinstance(a, plain) for a in (*args, *kwargs.values())):
            key = (tuple(args), tuple(sorted(kwargs.items())))
            try:
                if key in self.kept:
                    self.hits += 1
                    return self.kept[key]
                self.misses += 1
                result = context.call(self.function, args, kwargs)
                self.kept[key] = result
                return result
            except TypeError:
                pass
        return context.call(self.function, args, kwargs)

    def py_getattr(self, context: Any, name: str) -> Value:
        if name == "__get__":
            return Native("__get__", lambda _m, obj, _cls=None: BoundMethod(self, obj) if obj is not None else self)
        if name == "cache_clear":
            return Native(name, lambda _m: self.clear())
        if name == "cache_info":
            fields = ("hits", "misses", "maxsize", "currsize")
            numbers = dict(zip(fields, (self.hits, self.misses, self.maxsize, len(self.kept)), strict=True))
            return Native(name, lambda m: m.call(named_tuple(m, "CacheInfo", fields, {}, {}), [], numbers))
        if name == "__wrapped__":
            return self.function
        return (
            context.find(self.function, name)
            if name in ("__name__", "__doc__", "__module__", "__qualname__")
            else MISSING
        )


@entry("functools.lru_cache", "functools.cache")
def lru_cache(m: Any, function: Value = 128, *_args: Value, **options: Value) -> Value:
    if isinstance(function, (Function, Native, StaticMethod, Class)):
        return Cached(function)
    maxsize = options.get("maxsize", function)
    return Native("functools.lru_cache", lambda _m, fn: Cached(fn, maxsize))


@entry("functools.cached_property")
def cached_property(m: Any, function: Value) -> Value:
    return Property(function, cached=True)


@entry("functools.total_ordering")
def total_ordering(m: Any, cls: Value) -> Value:
    if not isinstance(cls, Class):
        return cls

    def swapped(name: str, negate: bool, flip: bool) -> Method:
        def call(m: Any, self: Value, other: Value) -> Value:
            a, b = (other, self) if flip else (self, other)
            truth = m.truth(operators.compare(m, name, a, b))
            return truth if isinstance(truth, Unknown) else truth is not negate

        return Method(f"total_ordering.{name}", call)

    if cls.lookup("__lt__") is not MISSING:
        made = {"__gt__": ("<", False, True), "__le__": ("<", True, True), "__ge__": ("<", True, False)}
    else:
        made = {"__lt__": (">", False, True), "__ge__": (">", True, True), "__le__": (">", True, False)}
    for key, arguments in made.items():
        cls.namespace.setdefault(key, swapped(*arguments))
    return cls


@entry("functools.cmp_to_key")
def cmp_to_key(m: Any, function: Value) -> Value:
    cls = Class("K", "functools.K", (OBJECT,), {})

    def less(m: Any, self: Instance, other: Instance) -> Value:
        return m.truth(operators.compare(m, "<", m.call(function, [self.attrs["obj"], other.attrs["obj"]]), 0))

    cls.namespace["__lt__"] = Native("K.__lt__", less)
    cls.mro = linearise(cls)
    return Native("K", lambda _m, obj: Instance(cls, {"obj": obj}))


class Dispatcher(HostObject):
    """``functools.singledispatch``."""

    def __init__(self, function: Value) -> None:
        self.default = function
        self.table: list[tuple[Value, Value]] = []

    def py_call(self, context: Any, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        for kind, function in reversed(self.table):
            if args and context.isinstance(args[0], kind) is True:
                return context.call(function, args, kwargs)
        return context.call(self.default, args, kwargs)

    def _dispatch(self, m: Any, kind: Value) -> Value:
        for known, function in reversed(self.table):
            if isinstance(kind, Class) and isinstance(known, Class) and m.issubclass(kind, known) is True:
                return function
        return self.default

    def py_getattr(self, context: Context, name: str) -> Value:
        if name == "register":
            return Native("register", self._register)
        if name == "dispatch":
            return Native("dispatch", self._dispatch)
        return context.getattr(self.default, name, MISSING) if name.startswith("__") else MISSING

    def _register(self, m: Any, kind: Value, function: Value = None) -> Value:
        if isinstance(kind, Function):
            hints = m.annotations(kind)
            first = next(iter(hints.values()), OBJECT)
            union = first.args if isinstance(first, TypeForm) and first.origin is None else (first,)
            self.table.extend((one, kind) for one in union)
            return kind
        if function is not None:
            self.table.append((kind, function))
            return function

        def decorate(_m: Any, fn: Value) -> Value:
            self.table.append((kind, fn))
            return fn

        return Native("register", decorate)


@entry("functools.singledispatch")
def singledispatch(m: Any, function: Value) -> Value:
    return Dispatcher(function)


class MethodDispatcher(Dispatcher):
    """``functools.singledispatchmethod``: chooses by the argument after ``self``."""

    def _bound(self, m: Any, obj: Value, cls: Value) -> Value:
        def call(m: Any, *args: Value, **kwargs: Value) -> Value:
            chosen = self.default
            for kind, function in reversed(self.table):
                if args and m.isinstance(args[0], kind) is True:
                    chosen = function
                    break
            if isinstance(chosen, StaticMethod):
                return m.call(chosen.function, args, kwargs)
            holder = cls if isinstance(chosen, ClassMethod) else obj
            function = chosen.function if isinstance(chosen, ClassMethod) else chosen
            return m.call(function, [holder, *args], kwargs)

        return Native("singledispatchmethod", call)

    def py_getattr(self, context: Context, name: str) -> Value:
        if name == "__get__":
            return Native("__get__", lambda m, obj, cls=None: self._bound(m, obj, cls))
        return super().py_getattr(context, name)


@entry("functools.singledispatchmethod")
def singledispatchmethod(m: Any, function: Value) -> Value:
    return MethodDispatcher(function)


# -- heapq, bisect, weakref ------------------------------------------------------------------------------------------


@entry("heapq.heapify")
def heapify(m: Any, heap: Value) -> None:
    if isinstance(heap, list):
        heap[:] = sort_items(m, heap, None, False)


@entry("heapq.heappush")
def heappush(m: Any, heap: Value, item: Value) -> None:
    if isinstance(heap, list):
        heap[:] = sort_items(m, [*heap, item], None, False)


@entry("heapq.heappop")
def heappop(m: Any, heap: Value) -> Value:
    return m.host(heap.pop, 0) if isinstance(heap, list) else m.derived("an item of a heap")


@entry("heapq.nlargest", "heapq.nsmallest")
def nlargest(m: Any, n: Value, items: Value, key: Value = None) -> Value:
    return sort_items(m, m.listed(items), key, True)[: n if isinstance(n, int) else None]


register(
    "heapq.nsmallest",
    Native(
        "heapq.nsmallest",
        lambda m, n, items, key=None: sort_items(m, m.listed(items), key, False)[: n if isinstance(n, int) else None],
    ),
)


def _place(m: Any, items: Value, x: Value, lo: Value, hi: Value, key: Value, *, left: bool) -> int:
    """Where ``x`` belongs among sorted ``items``: before its equals (``left``) or after them."""
    listed = m.listed(items)
    low, high = lo if isinstance(lo, int) else 0, hi if isinstance(hi, int) else len(listed)
    while low < high:
        middle = (low + high) // 2
        item = listed[middle] if key is None else m.call(key, [listed[middle]])
        below = operators.compare(m, "<", item, x) if left else operators.compare(m, "<", x, item)
        if (m.truth(below) is True) is left:
            low = middle + 1
        else:
            high = middle
    return low


for _name, _left in (("bisect", False), ("bisect_right", False), ("bisect_left", True)):
    register(
        f"bisect.{_name}",
        Native(
            f"bisect.{_name}",
            lambda m, a, x, lo=0, hi=None, *, key=None, _left=_left: _place(m, a, x, lo, hi, key, left=_left),
        ),
    )


@entry("bisect.insort", "bisect.insort_right", "bisect.insort_left")
def insort(m: Any, items: Value, x: Value, lo: Value = 0, hi: Value = None, *, key: Value = None) -> None:
    if isinstance(items, list):
        wanted = x if key is None else m.call(key, [x])
        items.insert(_place(m, items, wanted, lo, hi, key, left=False), x)


@entry("weakref.ref", "weakref.proxy")
def weak_reference(m: Any, value: Value, *_callback: Value) -> Value:
    return Native("weakref", lambda _m: value)


register("weakref.WeakValueDictionary", builtin_types.DICT)
register("weakref.WeakKeyDictionary", builtin_types.DICT)
register("weakref.WeakSet", builtin_types.SET)
