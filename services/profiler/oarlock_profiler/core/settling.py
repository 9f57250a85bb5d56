"""What would settle an unknown: one thing a person can do about it, in words.

An unknown says what is missing and why (:class:`~oarlock_profiler.core.findings.Gap`). From the kind of the reason
follows what to add to the bundle, to give on the command line, or to declare in the task file.
"""

# ruff: noqa: E501 - a row of a table is one kind of reason

from __future__ import annotations

import re
from collections.abc import Callable

Say = Callable[[re.Match[str], str], str]


def settled_by(what: str, why: str, place: str = "") -> str:
    """What to do about an unknown ``what`` because of ``why``; ``place`` is ``file:line``, if it has one."""
    for pattern, say in _BY_WHAT:
        found = pattern.search(what)
        if found is not None:
            return say(found, why)
    reason = _innermost(why)
    for pattern, say in _BY_WHY:
        found = pattern.search(reason)
        if found is not None:
            return say(found, what)
    if what.startswith("branch on "):
        return f"make `{what.removeprefix('branch on ')}` known: a constant, an argument, or `--env NAME=VALUE`"
    at = f" at {place}" if place else ""
    return f"write `{what}`{at} as a constant or an argument, or declare in the task file what it decides"


def _innermost(why: str) -> str:
    """The reason behind "the condition is not known: …" and the like."""
    for opening in ("the condition is not known: ", "subject is not known (", "its base "):
        if opening in why:
            why = why.partition(opening)[2]
    return why


def _declare(field: str) -> str:
    return f"declare `{field}:` in the task file"


def _argument(name: str) -> str:
    name = name if name.startswith("-") else f"--{name.lstrip('-')}"
    return f"give `-- {name} VALUE` after the script"


def _argument_named(found: re.Match[str], why: str) -> str:
    if "required" in why:
        name = found[1].strip("[]'")
        return _argument(name) if name.startswith("-") or "???" not in why else f"give `-- {name}=VALUE`"
    return f"give `-- {found[1]} …` in a form that the script takes"


def _module(found: re.Match[str], why: str) -> str:
    name = found[1]
    if "raises" in why:
        return f"what {name} needs to be imported: its own source raises ({why[-120:]})"
    path = name.replace(".", "/")
    return f"add `{path}.py` to the bundle, or give its source: `--library-path` with the folder that holds {name.partition('.')[0]}"


def _library(found: re.Match[str], _what: str) -> str:
    name = found[1]
    return (
        f"give the source of {name.partition('.')[0]} (`--library-path` with the folder that holds it); "
        "else what depends on it must be declared in the task file"
    )


def _file(found: re.Match[str], why: str) -> str:
    if "syntax error" in why or "parse" in why or "null bytes" in why or "larger than" in why:
        return f"mend `{found[1]}`: {why[:160]}"
    return f"add `{found[1]}` to the bundle"


def _rest(_found: re.Match[str], why: str) -> str:
    if "raises" in why:
        return f"what the script asks for before it goes on: {why[:200]}"
    if "interpreted steps" in why or "of reading" in why:
        return (
            "a shorter way to the training loop (smaller tables built in Python, fewer models); the reader has a budget"
        )
    if "not in the bundle" in why:
        return "name the script: `--entry FILE`"
    return f"mend the place where it stops: {why[:200]}"


def _always(text: str) -> Say:
    return lambda _found, _other: text


_BY_WHAT: list[tuple[re.Pattern[str], Say]] = [
    (re.compile(r"^device context$"), _always("choose the device: `--gpu NAME`")),
    (re.compile(r"^step time on (.+)$"), lambda f, _why: f"the data sheet's rates of {f[1]} in the catalogue of accelerators"),
    (re.compile(r"^(batch_size_per_gpu|sequence_length|hidden_size|model_name|framework)$"), lambda f, _why: _declare(f[1])),
    (re.compile(r"^(batch size|batch)$"), _always(_declare("batch_size_per_gpu"))),
    (re.compile(r"^(length of a text|sequence length)$"), _always(f"{_declare('sequence_length')}, or pad to a fixed length")),
    (re.compile(r"^memory$"), _always("a script whose model can be read, or `model_name:` of a known model in the task file")),
    (re.compile(r"^compute of one step$"), _always("a training or inference step on tensors of a framework in the script")),
    (re.compile(r"^the rest of the steps$"), _always("a smaller model or fewer micro-batches in one step; the reader keeps so many events")),
    (re.compile(r"^the rest of the script$"), _rest),
    (re.compile(r"^the entry script$"), _always("name the script: `--entry FILE`")),
    (re.compile(r"^argument (.+)$"), _argument_named),
    (re.compile(r"^command line$"), lambda _f, why: f"arguments that the script takes, after `--`: {why[:160]}"),
    (re.compile(r"^command$"), lambda _f, why: f"name it after `--`: {why[:160]}"),
    (re.compile(r"^configuration group (\S+)$"), lambda f, _why: f"give `-- {f[1]}=NAME`"),
    (re.compile(r"^module (\S+)$"), _module),
    (re.compile(r"^version of (\S+)$"), lambda f, _why: f"the installed version of {f[1]}: give its source with `--library-path`"),
    (re.compile(r"^file (.+)$"), _file),
    (re.compile(r"^the table read from (.+)$"), lambda f, _why: f"add `{f[1]}` to the bundle (its head is enough for the columns), or name its columns"),
    (re.compile(r"^number of classes$"), _always("the data's folder in the bundle (empty files do), or the number as a constant")),
    (re.compile(r"^rows of data$|^array read from a file$"), _always("the data's shape as a constant, or the file in the bundle")),
    (re.compile(r"^(image size|size of an input)$"), _always("a transform or an input declaration with both sides fixed")),
    (re.compile(r"^(where|mask|boxes of a picture|LBFGS history)$"), _always("nothing beforehand: it depends on the data; the bound that was assumed stands")),
    (re.compile(r"^while loop$"), _always("a loop that ends: by a number that is known, or by a step of training")),
    (re.compile(r"^tensor parallelism by a plan$"), _always(f"{_declare('distributed_strategy')} and the number of devices")),
]  # fmt: skip
_BY_WHY: list[tuple[re.Pattern[str], Say]] = [
    (re.compile(r"^module (\S+) could not be found"), _module),
    (re.compile(r"^argument (\S+) was not given"), lambda f, _what: _argument(f[1])),
    (re.compile(r"the file (\S+) is not in the bundle|^the configuration (\S+) is not in the bundle"), lambda f, _what: f"add `{f[1] or f[2]}` to the bundle"),
    (re.compile(r"^([A-Za-z_]\w*(?:\.\w+)+) (?:is|are) not (?:known to the reader|modelled)"), _library),
    (re.compile(r"^(\w+) is not (?:known to the reader|modelled)"), _library),
    (re.compile(r"environment variable (\S+)"), lambda f, _what: f"give `--env {f[1]}=VALUE`"),
    (re.compile(r"typed in by a person"), _always("write the answer as a constant or an argument")),
    (re.compile(r"named on the command line"), _always("add that file to the bundle and name it after `--`")),
    (re.compile(r"one of the commands (.+) must be named"), lambda f, _what: f"name one after `--`: {f[1][:120]}"),
    (re.compile(r"\b(?:stored data|checkpoints?|saved|pickled?)\b"), _always("nothing to add: stored data is never loaded; write the shape or the number in the script")),
    (re.compile(r"\b(?:file's contents are not|contents of a file|data file|csv|read from)\b"), _always("add the file to the bundle, or write its size as a constant")),
    (re.compile(r"a module whose name is not known|import of an unknown name"), _always("write the module's name as a constant, or give the argument it comes from")),
    (re.compile(r"is not given its argument|has no parameter|positional arguments"), _always("mend the call: it does not fit the function's parameters")),
    (re.compile(r"^NameError|^UnboundLocalError|has no value yet|is not defined"), _always("define the name before this line")),
    (re.compile(r"library code raises|^(?:\w+Error): "), lambda f, _what: f"mend the operation, or what it is given: {f.string[:120]}"),
    (re.compile(r"\b(?:too many|too large|too long|giant|grew past|nested)\b"), _always("a smaller value; the reader bounds what it holds")),
    (re.compile(r"\b(?:dates?|times?|clock|random(?:ly|ness)?)\b"), _always("nothing beforehand: it is decided when the script runs; the larger need was kept")),
]  # fmt: skip
