"""``argparse``, in full: the host's own argparse does the parsing, with the script's callables called through us.

Nothing exits: an error becomes a gap. A required argument that is not given is noted by name and becomes an unknown
of its type. Files (``FileType``, ``fromfile_prefix_chars``) are never opened.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from oarlock_profiler.core.interpreter.builtin_types import TYPES
from oarlock_profiler.core.interpreter.errors import EXCEPTIONS, Raised
from oarlock_profiler.core.interpreter.values import (
    MISSING,
    Class,
    Context,
    HostObject,
    Instance,
    Native,
    Unknown,
    Value,
)
from oarlock_profiler.core.overlays.registry import entry, linearise, register

LIBRARIES = ("argparse",)
_ACTIONS = {
    "store", "store_const", "store_true", "store_false", "append", "append_const", "count", "help", "version",
    "extend", "parsers",
}  # fmt: skip
_NARGS = 1000


class ArgumentFault(Exception):
    """The command line does not fit; what argparse would print before exiting."""


class _Parser(argparse.ArgumentParser):
    """Host parser that never exits, prints or opens files."""

    def error(self, message: str) -> Any:
        raise ArgumentFault(message)

    def exit(self, status: int = 0, message: str | None = None) -> Any:
        raise ArgumentFault(message or "exit")

    def print_help(self, file: Any = None) -> None:
        """Nothing is printed."""

    print_usage = print_help


class Namespace(Instance):
    """The parsed arguments."""


def _namespace_init(context: Context, self: Instance, **values: Value) -> None:
    self.attrs.update(values)


def _namespace_contains(context: Context, self: Instance, name: Value) -> Value:
    return name in self.attrs


def _namespace_eq(context: Context, self: Instance, other: Value) -> Value:
    return isinstance(other, Instance) and self.attrs == other.attrs


NAMESPACE = Class(
    "Namespace",
    "argparse.Namespace",
    (),
    {
        "__init__": Native("argparse.Namespace", _namespace_init),
        "__contains__": Native("argparse.Namespace.__contains__", _namespace_contains),
        "__eq__": Native("argparse.Namespace.__eq__", _namespace_eq),
    },
    make=Namespace,
)
NAMESPACE.mro = linearise(NAMESPACE)
register("argparse.Namespace", NAMESPACE)


class Target(argparse.Namespace):
    """Host namespace during parsing."""


class Group(HostObject):
    """A parser, a group of arguments, a set of sub-parsers, or an action: what its host object can do, through us."""

    def __init__(self, host: Any, parser: ParserInstance) -> None:
        self.host = host
        self.parser = parser

    def py_type(self) -> str:
        return f"argparse.{type(self.host).__name__.lstrip('_')}"

    def py_getattr(self, context: Context, name: str) -> Value:
        methods: dict[str, Callable[..., Value]] = {
            "add_argument": self._add,
            "add_argument_group": self._group,
            "add_mutually_exclusive_group": self._group,
            "add_parser": self._sub,
            "set_defaults": self._defaults,
        }
        method = methods.get(name)
        if method is not None:
            return Native(f"argparse.{name}", method)
        if name in (
            "dest",
            "required",
            "default",
            "choices",
            "help",
            "nargs",
            "const",
            "type",
            "option_strings",
            "metavar",
        ):
            return getattr(self.host, name, None)
        return MISSING

    def py_setattr(self, context: Context, name: str, value: Value) -> bool:
        if name == "required":
            self.parser.require(self.host, value is True)
        elif name in ("default", "choices", "help", "const", "dest"):
            setattr(self.host, name, value)
        return True

    def _add(self, context: Context, *names: Value, **options: Value) -> Value:
        return add_argument(context, self.parser, self.host, names, options)

    def _group(self, context: Context, *args: Value, **kwargs: Value) -> Value:
        return Group(self.host.add_argument_group(), self.parser)

    def _defaults(self, context: Context, **values: Value) -> None:
        self.parser.host.set_defaults(**values)

    def _sub(self, context: Context, name: Value, *args: Value, **options: Value) -> Value:
        made = ParserInstance(PARSER)
        aliases = options.get("aliases", ())
        parents = options.get("parents", ())
        _set_up(context, made, {"parents": parents})
        made.sub = True
        self.parser.root().inner.append(made)
        for key in (name, *context_list(context, aliases)):
            if isinstance(key, str):
                self.host._name_parser_map[key] = made.host
                self.host.choices[key] = made.host
        return made


def context_list(context: Context, value: Value) -> list[Value]:
    """The items of a known sequence."""
    return list(value) if isinstance(value, (list, tuple)) else []


class ParserInstance(Instance):
    """An ``ArgumentParser`` of the script (or of a class that derives from it)."""

    def __init__(self, cls: Class) -> None:
        super().__init__(cls)
        self.host: _Parser = _Parser(add_help=False, allow_abbrev=True)
        self.required: dict[int, tuple[Any, Callable[[str], Any] | None]] = {}
        self.exclusive: list[Any] = []
        self.inner: list[ParserInstance] = []
        self.sub = False

    def root(self) -> ParserInstance:
        """Itself; sub-parsers are collected here."""
        return self

    def require(self, action: Any, needed: bool) -> None:
        """Note that ``action`` must be given; the host parser is never told."""
        action.required = False
        if needed:
            self.required[id(action)] = (action, action.type)
        else:
            self.required.pop(id(action), None)


def _set_up(context: Context, self: ParserInstance, options: dict[str, Value]) -> None:
    for parent in context_list(context, options.get("parents", ())):
        if isinstance(parent, ParserInstance):
            for action in parent.host._actions:
                self.host._add_action(action)
            self.host._defaults.update(parent.host._defaults)
            self.required.update(parent.required)
    abbreviations = options.get("allow_abbrev", True)
    if abbreviations is False:
        self.host.allow_abbrev = False
    prefix = options.get("prefix_chars")
    if isinstance(prefix, str) and prefix and "-" not in prefix:
        self.host.prefix_chars = prefix
    if options.get("argument_default") is SUPPRESS:
        self.host.argument_default = argparse.SUPPRESS


def _init(context: Context, self: ParserInstance, *args: Value, **options: Value) -> None:
    _set_up(context, self, options)


def _host_type(context: Context, given: Value) -> Callable[[str], Any] | None:
    if given is None or isinstance(given, Unknown):
        return None
    if isinstance(given, Class) and given.qualname == "builtins.str":
        return None

    def convert(text: str) -> Any:
        try:
            return context.call(given, [text])
        except Raised as raised:
            error = raised.value
        raise ValueError(str(error.attrs.get("args", "")))

    convert.__name__ = getattr(given, "name", "type")
    return convert


class _ScriptAction(argparse.Action):
    """An action class of the script: called with the script's own namespace view."""

    context: Context
    cls: Class
    options: dict[str, Value]

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: Any = None) -> None:
        view = Namespace(NAMESPACE, vars(namespace))
        made = Instance(self.cls)
        made.attrs.update(dest=self.dest, nargs=self.nargs, const=self.const, default=self.default,
                          option_strings=list(self.option_strings), **self.options)  # fmt: skip
        self.context.call(self.context.getattr(made, "__call__"), [None, view, values, option_string])


def add_argument(
    context: Context, parser: ParserInstance, host: Any, names: tuple[Value, ...], options: dict[str, Value]
) -> Value:
    """``add_argument(*names, **options)`` on a parser or group."""
    texts = [n for n in names if isinstance(n, str)]
    kept: dict[str, Any] = {}
    required = options.pop("required", False)
    action = options.pop("action", None)
    type_ = options.pop("type", None)
    choices = options.pop("choices", None)
    options.pop("help", None)
    options.pop("metavar", None)
    options.pop("deprecated", None)
    for key in ("nargs", "const", "default", "dest", "version"):
        if key in options:
            kept[key] = options.pop(key)
    if kept.get("default") is SUPPRESS:
        kept["default"] = argparse.SUPPRESS
    nargs = kept.get("nargs")
    if isinstance(nargs, Unknown) or (isinstance(nargs, int) and not 0 < nargs <= _NARGS):
        context.findings.gap(f"argument {texts[:1]}", context.where, "its nargs cannot be used")
        kept["nargs"] = "*"
    if isinstance(action, str) and action in _ACTIONS:
        kept["action"] = action
        if action in ("help", "version"):
            return None
    elif isinstance(action, Class):
        if action.qualname == "argparse.BooleanOptionalAction":
            kept["action"] = argparse.BooleanOptionalAction
        else:
            kept["action"] = type(
                "ScriptAction", (_ScriptAction,), {"context": context, "cls": action, "options": options}
            )
    flagless = kept.get("action") in ("store_true", "store_false", "store_const", "count", "append_const")
    if flagless:
        kept.pop("nargs", None)
        if kept.get("action") in ("store_true", "store_false", "count"):
            kept.pop("const", None)
    else:
        converter = _host_type(context, type_)
        if converter is not None:
            kept["type"] = converter
    if kept.get("action") is argparse.BooleanOptionalAction:
        kept.pop("type", None)
        kept.pop("nargs", None)
        kept.pop("const", None)
    positional = bool(texts) and texts[0][:1] not in host.prefix_chars
    if positional:
        kept.pop("dest", None) if texts else None
        if flagless:
            texts = []
    if not texts and "dest" not in kept:
        return context.unknown("an argument without a name", hint="action")
    container = host
    try:
        made = container.add_argument(*texts, **kept)
    except (argparse.ArgumentError, ValueError, TypeError) as error:
        if "conflicting" in str(error):
            return Group(next(a for a in parser.host._actions if set(texts) & set(a.option_strings)), parser)
        return context.unknown(f"argument {texts[:1]}: {error}", hint="action")
    if choices is not None and not isinstance(choices, Unknown):
        parser_choices = list(context.iterate(choices).items)
        if not any(isinstance(c, Unknown) for c in parser_choices):
            made.choices = parser_choices
    made.oarlock_type = type_
    if positional and made.required:
        parser.required[id(made)] = (made, made.type)
    else:
        parser.require(made, required is True)
    return Group(made, parser)


def _typed_unknown(context: Context, action: Any) -> Unknown:
    given = getattr(action, "oarlock_type", None)
    hint = given.name if isinstance(given, Class) and given in TYPES.values() else None
    if given is None and not isinstance(action, (argparse._StoreTrueAction, argparse._StoreFalseAction)):
        hint = "str"
    if action.nargs in ("*", "+") or isinstance(action.nargs, int):
        hint = "list"
    name = action.option_strings[-1] if action.option_strings else action.dest
    context.findings.gap(f"argument {name}", context.where, "it is required and was not given")
    return Unknown(f"argument {name} was not given", context.where, hint, name=name)


def _arguments(context: Any, given: Value) -> list[str]:
    if given is None:
        return [str(a) for a in context.request.arguments]
    if isinstance(given, Unknown):
        return []
    return [a for a in context.iterate(given).items if isinstance(a, str)]


def parse(context: Any, self: ParserInstance, given: Value, namespace: Value, known: bool) -> Value:
    """The namespace, and what is left over when ``known``."""
    arguments = _arguments(context, given)
    target = Target()
    if isinstance(namespace, Instance):
        target.__dict__.update(namespace.attrs)
    rest: list[str] = []
    for _ in range(len(arguments) + 2):
        try:
            _, rest = self.host.parse_known_args(arguments, target)
            break
        except ArgumentFault as fault:
            if "are required" in str(fault) and _relax(self):
                continue
            context.findings.gap("command line", context.where, str(fault)[:300])
            culprit = next(
                (a for a in arguments if str(fault).find(a.partition("=")[0]) >= 0 and a.startswith("-")), None
            )
            if culprit is None:
                break
            # drop the argument that does not fit, and read the others
            index = arguments.index(culprit)
            arguments = arguments[:index] + arguments[index + (1 if "=" in culprit else 2) :]
    if rest and not known:
        context.findings.gap(
            "command line", context.where, f"arguments that the script does not know: {' '.join(rest)[:200]}"
        )
    values = vars(target)
    for action in _every_action(self):
        if action.dest in (None, argparse.SUPPRESS) or action.dest in values:
            continue
        if not isinstance(action.default, str) or action.default != argparse.SUPPRESS:
            values[action.dest] = None if action.default is MISSING else action.default
    _fill_required(context, self, values)
    for inner in self.inner:
        if _chosen(self, inner, values):
            _fill_required(context, inner, values)
    result = Namespace(NAMESPACE, {})
    if isinstance(namespace, Instance):
        result = namespace  # type: ignore[assignment]
    for name, value in values.items():
        result.attrs[name] = None if value is MISSING else value
    for name, value in result.attrs.items():
        if isinstance(value, (int, float, str, bool)) and len(str(value)) < 200:
            context.findings.fact(f"argument {name}", value, context.where)
    return (result, list(rest)) if known else result


def _relax(parser: ParserInstance) -> bool:
    """Let positionals be absent (they are then noted by name); False when there is nothing left to relax."""
    changed = False
    for one in (parser, *parser.inner):
        for action, _ in one.required.values():
            if not action.option_strings and action.required and not isinstance(action, argparse._SubParsersAction):
                action.required = False
                action.nargs = "?" if action.nargs is None else "*"
                action.default = MISSING
                changed = True
    return changed


def _every_action(parser: ParserInstance) -> list[Any]:
    return list(parser.host._actions)


def _chosen(outer: ParserInstance, inner: ParserInstance, values: dict[str, Any]) -> bool:
    for action in outer.host._actions:
        if isinstance(action, argparse._SubParsersAction):
            chosen = getattr(outer, "last_command", None)
            return any(
                p is inner.host and (chosen is None or n == chosen) and _seen(inner, values)
                for n, p in action.choices.items()
            )
    return False


def _seen(inner: ParserInstance, values: dict[str, Any]) -> bool:
    """Whether the sub-parser ran: argparse sets all of its destinations when it does."""
    dests = [a.dest for a in inner.host._actions if a.dest and a.default is not argparse.SUPPRESS]
    return bool(dests) and all(d in values for d in dests)


def _fill_required(context: Any, parser: ParserInstance, values: dict[str, Any]) -> None:
    for action, _ in list(parser.required.values()):
        if isinstance(action, argparse._SubParsersAction):
            continue
        value = values.get(action.dest, MISSING)
        if value is MISSING or (value is None and action.default is None) or (value == [] and action.nargs == "*"):
            values[action.dest] = _typed_unknown(context, action)


def _parse_args(context: Context, self: ParserInstance, args: Value = None, namespace: Value = None) -> Value:
    return parse(context, self, args, namespace, False)


def _parse_known_args(context: Context, self: ParserInstance, args: Value = None, namespace: Value = None) -> Value:
    return parse(context, self, args, namespace, True)


def _add_argument(context: Context, self: ParserInstance, *names: Value, **options: Value) -> Value:
    return add_argument(context, self, self.host, names, options)


def _add_group(context: Context, self: ParserInstance, *args: Value, **kwargs: Value) -> Value:
    return Group(self.host.add_argument_group(), self)


def _add_subparsers(context: Context, self: ParserInstance, *args: Value, **options: Value) -> Value:
    dest = options.get("dest")
    host = self.host.add_subparsers(dest=dest) if isinstance(dest, str) else self.host.add_subparsers()
    host.required = False
    self.require(host, options.get("required") is True)
    return Group(host, self)


def _set_defaults(context: Context, self: ParserInstance, **values: Value) -> None:
    self.host.set_defaults(**values)
    for name in values:
        for key, (action, _) in list(self.required.items()):
            if action.dest == name:
                del self.required[key]


def _get_default(context: Context, self: ParserInstance, name: Value) -> Value:
    return self.host.get_default(name) if isinstance(name, str) else None


def _error(context: Context, self: ParserInstance, message: Value = "") -> Value:
    context.findings.gap(
        "command line", context.where, f"the script refuses it: {message if isinstance(message, str) else ''}"
    )
    raise Raised(Instance(EXCEPTIONS["SystemExit"], {"args": (2,), "code": 2}))


def _silent(context: Context, self: ParserInstance, *args: Value, **kwargs: Value) -> str:
    return ""


def _getattr(context: Context, self: ParserInstance, name: str) -> Value:
    if name in ("description", "prog", "epilog", "usage"):
        return getattr(self.host, name, None)
    if name == "_actions":
        return [Group(a, self) for a in self.host._actions]
    return MISSING


_METHODS: dict[str, Callable[..., Value]] = {
    "__init__": _init,
    "__getattr__": _getattr,
    "add_argument": _add_argument,
    "add_argument_group": _add_group,
    "add_mutually_exclusive_group": _add_group,
    "add_subparsers": _add_subparsers,
    "set_defaults": _set_defaults,
    "get_default": _get_default,
    "parse_args": _parse_args,
    "parse_known_args": _parse_known_args,
    "parse_intermixed_args": _parse_args,
    "error": _error,
    "exit": _error,
    "print_help": _silent,
    "print_usage": _silent,
    "format_help": _silent,
    "format_usage": _silent,
    "register": _silent,
}
PARSER = Class(
    "ArgumentParser",
    "argparse.ArgumentParser",
    (),
    {name: Native(f"argparse.ArgumentParser.{name}", fn) for name, fn in _METHODS.items()},
    make=ParserInstance,
)
PARSER.mro = linearise(PARSER)
register("argparse.ArgumentParser", PARSER)
SUPPRESS = argparse.SUPPRESS
register("argparse.SUPPRESS", SUPPRESS)
register("argparse.OPTIONAL", "?")
register("argparse.ZERO_OR_MORE", "*")
register("argparse.ONE_OR_MORE", "+")
register("argparse.REMAINDER", argparse.REMAINDER)


def _plain_class(name: str, bases: tuple[Class, ...] = ()) -> Class:
    cls = Class(name, f"argparse.{name}", bases, {})
    cls.mro = linearise(cls)
    register(f"argparse.{name}", cls)
    return cls


for _name in (
    "HelpFormatter", "RawTextHelpFormatter", "RawDescriptionHelpFormatter", "ArgumentDefaultsHelpFormatter",
    "MetavarTypeHelpFormatter", "Action", "BooleanOptionalAction", "_StoreAction", "_StoreTrueAction",
    "_ArgumentGroup", "_SubParsersAction",
):  # fmt: skip
    _plain_class(_name)
_plain_class("ArgumentTypeError", (EXCEPTIONS["Exception"],))
_plain_class("ArgumentError", (EXCEPTIONS["Exception"],))


@entry("argparse.FileType")
def file_type(context: Context, *args: Value, **kwargs: Value) -> Value:
    """Never opens: the argument stays a path."""

    def path_of(context: Context, path: Value) -> Value:
        return context.unknown("a file named on the command line", hint="file")

    return Native("argparse.FileType", path_of)
