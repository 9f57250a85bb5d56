"""Tools that wrap a script's own calls and change nothing: profilers that call the training function, type checkers."""

from __future__ import annotations

from typing import Any

from oarlock_profiler.core.interpreter.values import Context, Instance, Native, Unknown, Value
from oarlock_profiler.core.overlays.registry import entry, native_class, register

LIBRARIES = ("cProfile", "profile", "pstats", "line_profiler", "memory_profiler", "typeguard", "beartype", "jaxtyping")


def _nothing(context: Context, *args: Value, **kwargs: Value) -> None:
    return None


def _itself(context: Context, self: Value = None, *args: Value, **kwargs: Value) -> Value:
    return self


def _runcall(context: Context, self: Instance, function: Value, *args: Value, **kwargs: Value) -> Value:
    """Calls the function: what it does is what the script does."""
    return context.call(function, args, kwargs)


def _decorated(context: Context, self: Instance, function: Value = None, *args: Value, **kwargs: Value) -> Value:
    return function


def _each(names: tuple[str, ...], function: Value) -> dict[str, Any]:
    return dict.fromkeys(names, function)


_PROFILE = native_class(
    "cProfile.Profile",
    __init__=_nothing,
    __enter__=_itself,
    __exit__=_nothing,
    __call__=_decorated,
    runcall=_runcall,
    **_each(("enable", "disable", "create_stats", "print_stats", "dump_stats", "clear", "run", "runctx"), _nothing),
)
for _name in ("cProfile.Profile", "profile.Profile", "line_profiler.LineProfiler"):
    register(_name, _PROFILE)
_STATS = native_class(
    "pstats.Stats",
    __init__=_nothing,
    **_each(("strip_dirs", "sort_stats", "print_stats", "add", "dump_stats", "print_callers"), _itself),
)
register("pstats.Stats", _STATS)
for _name in ("CUMULATIVE", "TIME", "CALLS"):
    register(f"pstats.SortKey.{_name}", _name.lower())


@entry(
    "typeguard.typechecked", "typeguard.suppress_type_checks", "beartype.beartype", "jaxtyping.jaxtyped",
    "memory_profiler.profile", "line_profiler.profile",
)  # fmt: skip
def checked(context: Context, target: Value = None, *args: Value, **kwargs: Value) -> Value:
    """A decorator, with or without options, that leaves its function as it is."""
    if target is None or kwargs:
        return Native("typeguard.typechecked", lambda _context, inner=None, *_more: inner)
    return target


for _name in ("check_argument_types", "check_return_type", "check_type"):
    register(f"typeguard.{_name}", Native(f"typeguard.{_name}", lambda _context, *_args, **_kwargs: True))
register("typeguard.install_import_hook", Native("typeguard.install_import_hook", _nothing))


@entry("memory_profiler.memory_usage")
def memory_usage(context: Context, *args: Value, **kwargs: Value) -> Value:
    """A measurement."""
    return Unknown("a measurement of the running process", context.where, "list")
