"""Methods of lists, tuples, dictionaries, sets and deques. Elements may be any value, unknowns too."""

# ruff: noqa: ARG001 - the signatures are Python's own

from __future__ import annotations

from typing import Any

from oarlock_profiler.core.interpreter import operators
from oarlock_profiler.core.interpreter.builtin_types import (
    COUNTER,
    DEQUE,
    DICT,
    FROZENSET,
    LIST,
    ORDERED_DICT,
    RANGE,
    SET,
    TUPLE,
    method,
)
from oarlock_profiler.core.interpreter.descriptors import ClassMethod
from oarlock_profiler.core.interpreter.ordering import sort_items
from oarlock_profiler.core.interpreter.values import MISSING, Instance, Native, Unknown, Value

_BASES: tuple[Any, ...] = (dict, list, tuple, set, frozenset)


def _room(m: Any, self: Any, more: int = 1) -> bool:
    if len(self) + more <= m.budget.limits.size:
        return True
    m.unknown(f"a container grew past {m.budget.limits.size:,} items; the rest was left out")
    return False


def _position(m: Any, self: Any, item: Value) -> int | Unknown | None:
    for index, other in enumerate(list(self)):
        m.spend()
        if other is item:
            return index
        equal = m.truth(operators.compare(m, "==", other, item))
        if isinstance(equal, Unknown):
            return Unknown(equal.why, equal.where, "int")
        if equal:
            return index
    return None


@method(LIST, DEQUE)
def append(m: Any, self: Any, item: Value) -> None:
    if _room(m, self):
        self.append(item)
        m.open_lists.grown(self, item)


@method(LIST, DEQUE)
def extend(m: Any, self: Any, items: Value) -> None:
    given = m.listed(items)
    if _room(m, self, len(given)):
        self.extend(given)
        m.open_lists.grown(self, given)
        m.open_lists.copied(self, items)
        if isinstance(items, Unknown):
            m.open_lists.mark(self)


@method(DEQUE)
def appendleft(m: Any, self: Any, item: Value) -> None:
    if _room(m, self):
        self.appendleft(item)


@method(DEQUE)
def extendleft(m: Any, self: Any, items: Value) -> None:
    given = m.listed(items)
    if _room(m, self, len(given)):
        self.extendleft(given)


@method(DEQUE)
def popleft(m: Any, self: Any) -> Value:
    return m.host(self.popleft)


@method(DEQUE)
def rotate(m: Any, self: Any, steps: Value = 1) -> None:
    if isinstance(steps, int):
        self.rotate(steps)


@method(LIST, DEQUE)
def insert(m: Any, self: Any, index: Value, item: Value) -> None:
    if _room(m, self):
        self.insert(index if isinstance(index, int) else len(self), item)


@method(LIST, DEQUE)
def pop(m: Any, self: Any, index: Value = -1) -> Value:
    if isinstance(index, Unknown):
        return m.part(index)
    return m.host(self.pop) if index == -1 else m.host(self.pop, index)


@method(LIST, DEQUE)
def remove(m: Any, self: Any, item: Value) -> Value:
    index = _position(m, self, item)
    if index is None:
        return m.fail("ValueError", "the item to remove is not in the list")
    if isinstance(index, int):
        del self[index]
    return None


@method(LIST, TUPLE, DEQUE, RANGE)
def index(m: Any, self: Any, item: Value, *bounds: Value) -> Value:
    if bounds and all(isinstance(b, int) for b in bounds):
        return m.host(self.index, item, *bounds)
    found = _position(m, self, item)
    return m.fail("ValueError", "the item is not in the list") if found is None else found


@method(LIST, TUPLE, DEQUE, RANGE)
def count(m: Any, self: Any, item: Value) -> Value:
    total = 0
    for other in list(self):
        m.spend()
        equal = m.truth(operators.compare(m, "==", other, item))
        if isinstance(equal, Unknown):
            return Unknown(equal.why, equal.where, "int", 0, len(self))
        total += equal
    return total


@method(LIST)
def sort(m: Any, self: Any, *, key: Value = None, reverse: Value = False) -> None:
    items = list(self)
    self.clear()
    self.extend(sort_items(m, items, key, reverse))


@method(LIST, DEQUE)
def reverse(m: Any, self: Any) -> None:
    self.reverse()


@method(LIST, DICT, SET, DEQUE)
def clear(m: Any, self: Any) -> None:
    self.clear()


@method(LIST, DICT, SET, DEQUE, FROZENSET)
def copy(m: Any, self: Any) -> Value:
    if isinstance(self, Instance):
        return next(base(self) for base in _BASES if isinstance(self, base))
    return m.open_lists.copied(self.copy(), self)


# -- dictionaries ----------------------------------------------------------------------------------------------------


def _lookup(m: Any, self: Any, key: Value) -> Value:
    try:
        return self[key] if key in self else MISSING  # noqa: SIM401 - get() is not what every mapping indexes by
    except TypeError as error:
        return m.fail_host(error)


@method(DICT)
def get(m: Any, self: Any, key: Value, default: Value = None) -> Value:
    if isinstance(key, Unknown):
        return operators.getitem(m, dict(self), key)
    found = _lookup(m, self, key)
    if found is MISSING and m.completed(key):
        found = _lookup(m, self, key)
    return default if found is MISSING else found


@method(DICT)
def setdefault(m: Any, self: Any, key: Value, default: Value = None) -> Value:
    found = _lookup(m, self, key)
    if found is not MISSING:
        return found
    operators.setitem(m, self, key, default)
    return default


@method(DICT, name="pop")
def dict_pop(m: Any, self: Any, key: Value, default: Value = MISSING) -> Value:
    if isinstance(key, Unknown):
        return m.part(key)
    if _lookup(m, self, key) is MISSING:
        return m.fail("KeyError", repr(key)[:100]) if default is MISSING else default
    return self.pop(key)


@method(DICT)
def popitem(m: Any, self: Any, last: Value = True) -> Value:
    if last is not True and self:
        key = next(iter(self))
        return key, self.pop(key)
    return m.host(self.popitem)


@method(ORDERED_DICT)
def move_to_end(m: Any, self: Any, key: Value, last: Value = True) -> None:
    if key in self:
        value = self.pop(key)
        rest = {} if last is True else dict(self)
        if rest:
            self.clear()
        self[key] = value
        self.update(rest)


@method(DICT)
def update(m: Any, self: Any, given: Value = (), **more: Value) -> None:
    if isinstance(given, Unknown):
        pairs: Any = []
    elif isinstance(given, dict) or m.find(given, "keys") is not MISSING:
        spread = m.mapping(given)
        pairs = [] if isinstance(spread, Unknown) else spread.items()
    else:
        pairs = [tuple(m.listed(pair)[:2]) for pair in m.listed(given)]
    for key, value in [*pairs, *more.items()]:
        if _room(m, self):
            operators.setitem(m, self, key, value)


@method(DICT)
def keys(m: Any, self: Any) -> Value:
    return dict.keys(self)


@method(DICT)
def values(m: Any, self: Any) -> Value:
    return dict.values(self)


@method(DICT)
def items(m: Any, self: Any) -> Value:
    return dict.items(self)


def _fromkeys(m: Any, _cls: Value, given: Value, value: Value = None) -> Value:
    return m.host(dict.fromkeys, m.listed(given), value)


DICT.namespace["fromkeys"] = ClassMethod(Native("dict.fromkeys", _fromkeys))


@method(DICT, name="__getitem__")
def dict_get_item(m: Any, self: Any, key: Value) -> Value:
    if isinstance(key, Unknown):
        return operators.getitem(m, dict(self), key)
    try:
        return dict.__getitem__(self, key)
    except (KeyError, TypeError) as error:
        if isinstance(self, Instance):
            hook = self.cls.lookup("__missing__")
            if hook is not MISSING:
                return m.call(m.bind(hook, self, self.cls), [key])
            factory = self.attrs.get("default_factory")
            if factory is not None and isinstance(error, KeyError):
                made = m.call(factory)
                dict.__setitem__(self, key, made)  # type: ignore[index]
                return made
        return m.fail_host(error)


@method(LIST, TUPLE, name="__getitem__")
def list_get_item(m: Any, self: Any, key: Value) -> Value:
    base = list if isinstance(self, list) else tuple
    return m.part(key) if isinstance(key, Unknown) else m.host(base.__getitem__, self, key)


@method(DICT, name="__setitem__")
def dict_set_item(m: Any, self: Any, key: Value, value: Value) -> None:
    m.host(dict.__setitem__, self, key, value)


@method(LIST, name="__setitem__")
def list_set_item(m: Any, self: Any, key: Value, value: Value) -> None:
    if not isinstance(key, Unknown):
        m.host(list.__setitem__, self, key, value)


@method(DICT, name="__delitem__")
def dict_delete_item(m: Any, self: Any, key: Value) -> None:
    m.host(dict.__delitem__, self, key)


@method(LIST, name="__delitem__")
def list_delete_item(m: Any, self: Any, key: Value) -> None:
    m.host(list.__delitem__, self, key)


@method(DICT, LIST, TUPLE, SET, FROZENSET)
def __contains__(m: Any, self: Any, item: Value) -> Value:
    if isinstance(self, dict):
        return item in self.keys()
    return operators.contains(m, list(self), item)


@method(DICT, LIST, TUPLE, SET, FROZENSET)
def __len__(m: Any, self: Any) -> int:
    return next((base.__len__(self) for base in _BASES if isinstance(self, base)), 0)


@method(DICT, LIST, TUPLE, SET, FROZENSET)
def __iter__(m: Any, self: Any) -> Value:
    return next((iter(list(base.__iter__(self))) for base in _BASES if isinstance(self, base)), iter(()))


@method(COUNTER)
def most_common(m: Any, self: Any, n: Value = None) -> Value:
    return m.host(self.most_common, n if isinstance(n, int) else None)


@method(COUNTER)
def elements(m: Any, self: Any) -> Value:
    if sum(v for v in self.values() if isinstance(v, int)) > m.budget.limits.size:
        return m.unknown("too many elements", hint="list")
    return list(self.elements())


# -- sets ------------------------------------------------------------------------------------------------------------


@method(SET)
def add(m: Any, self: Any, item: Value) -> None:
    if _room(m, self):
        m.host(self.add, item)


@method(SET)
def discard(m: Any, self: Any, item: Value) -> None:
    m.host(self.discard, item)


@method(SET, name="remove")
def set_remove(m: Any, self: Any, item: Value) -> Value:
    return m.host(self.remove, item)


@method(SET, name="pop")
def set_pop(m: Any, self: Any) -> Value:
    return m.host(self.pop)


def _algebra(name: str, result: str = "set") -> None:
    def call(m: Any, self: Any, *others: Value) -> Value:
        given = []
        for other in others:
            if isinstance(other, Unknown):
                return Unknown(other.why, other.where, result)
            given.append(m.listed(other))
        return m.host(getattr(self, name), *given)

    for cls in (SET, FROZENSET):
        cls.namespace[name] = Native(f"set.{name}", call)


for _name in ("union", "intersection", "difference", "symmetric_difference"):
    _algebra(_name)
for _name in ("issubset", "issuperset", "isdisjoint"):
    _algebra(_name, "bool")


def _mutating(name: str) -> None:
    def call(m: Any, self: Any, *others: Value) -> None:
        given = [m.listed(other) for other in others if not isinstance(other, Unknown)]
        m.host(getattr(self, name), *given)

    SET.namespace[name] = Native(f"set.{name}", call)


for _name in ("update", "intersection_update", "difference_update", "symmetric_difference_update"):
    _mutating(_name)
