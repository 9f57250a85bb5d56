"""Methods of ``str``, ``bytes``, ``int`` and ``float``: the host's own, with known arguments and bounded results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oarlock_profiler.core.interpreter import formatting
from oarlock_profiler.core.interpreter.builtin_types import BYTEARRAY, BYTES, COMPLEX, FLOAT, INT, STR, method
from oarlock_profiler.core.interpreter.descriptors import ClassMethod, StaticMethod
from oarlock_profiler.core.interpreter.source_text import is_plain
from oarlock_profiler.core.interpreter.values import Class, Native, Unknown, Value

_WIDTH = 10_000
_PADDED = {"ljust", "rjust", "center", "zfill", "expandtabs"}
_RESULT = {
    "split": "list", "rsplit": "list", "splitlines": "list", "partition": "tuple", "rpartition": "tuple",
    "startswith": "bool", "endswith": "bool", "isdigit": "bool", "isalpha": "bool", "isnumeric": "bool",
    "isupper": "bool", "islower": "bool", "isspace": "bool", "isalnum": "bool", "find": "int", "rfind": "int",
    "index": "int", "count": "int", "encode": "bytes", "decode": "str",
}  # fmt: skip


def _wrap(host: type, name: str) -> Callable[..., Value]:
    function: Any = getattr(host, name)
    hint = _RESULT.get(name, host.__name__)

    def call(m: Any, self: Value, *args: Value, **kwargs: Value) -> Value:
        for given in (self, *args, *kwargs.values()):
            if isinstance(given, Unknown):
                return Unknown(given.why, given.where, hint, name=given.name)
        if name in _PADDED and any(isinstance(a, int) and abs(a) > _WIDTH for a in args):
            return m.unknown("a giant text width", hint=hint)
        if name in ("encode", "decode"):
            encoding = args[0] if args else kwargs.get("encoding", "utf-8")
            if isinstance(encoding, str) and not is_plain(encoding):
                return m.unknown(f"text in the encoding {encoding[:40]!r}", hint=hint)
        grows = name == "replace" and len(args) >= 2 and len(args[0]) < len(args[1])
        if grows and self.count(args[0]) * len(args[1]) > m.budget.limits.size:
            return m.unknown("text too long", hint=hint)
        try:
            return function(self, *args, **kwargs)
        except Exception as error:
            return m.fail_host(error)

    return call


def _install(cls: Class, host: type, names: str) -> None:
    for name in names.split():
        cls.namespace[name] = Native(f"{cls.name}.{name}", _wrap(host, name))


_COMMON = (
    "capitalize center count endswith expandtabs find index isalnum isalpha isascii isdigit islower isspace istitle "
    "isupper ljust lower lstrip partition removeprefix removesuffix replace rfind rindex rjust rpartition rsplit "
    "rstrip split splitlines startswith strip swapcase title upper zfill"
)
_install(STR, str, _COMMON + " casefold encode isdecimal isidentifier isnumeric isprintable translate")
_install(BYTES, bytes, _COMMON + " decode hex")
_install(BYTEARRAY, bytearray, _COMMON + " decode hex")
_install(INT, int, "bit_length bit_count conjugate to_bytes as_integer_ratio")
_install(FLOAT, float, "is_integer conjugate hex as_integer_ratio")
_install(COMPLEX, complex, "conjugate")


@method(STR)
def join(m: Any, self: str, items: Value) -> Value:
    parts = m.listed(items)
    for part in parts:
        if isinstance(part, Unknown):
            return formatting.doubtful(part)
        if not isinstance(part, str):
            return m.fail("TypeError", "only text can be joined")
    if sum(map(len, parts)) + len(self) * len(parts) > m.budget.limits.size:
        return m.unknown("text too long", hint="str")
    return self.join(parts)


@method(STR)
def format_(m: Any, self: str, *args: Value, **kwargs: Value) -> Value:
    return formatting.format_method(m, self, args, kwargs)


@method(STR)
def format_map(m: Any, self: str, mapping: Value) -> Value:
    given = m.mapping(mapping)
    return formatting.doubtful(given) if isinstance(given, Unknown) else formatting.format_method(m, self, (), given)


STR.namespace["maketrans"] = StaticMethod(Native("str.maketrans", lambda m, *args: m.host(str.maketrans, *args)))
INT.namespace["from_bytes"] = ClassMethod(
    Native("int.from_bytes", lambda m, _cls, *args, **kw: m.host(lambda: int.from_bytes(*args, **kw)))
)
BYTES.namespace["fromhex"] = ClassMethod(Native("bytes.fromhex", lambda m, _cls, text: m.host(bytes.fromhex, text)))
FLOAT.namespace["fromhex"] = ClassMethod(Native("float.fromhex", lambda m, _cls, text: m.host(float.fromhex, text)))
