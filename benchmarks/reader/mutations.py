"""Mutations of the training scripts, the language snippets and the hostile corpus: one bundle for each seed.

Four kinds: bytes (flips, cuts, encodings), tokens, lines, and the syntax tree (statements and expressions removed,
doubled, swapped, wrapped and replaced by what is giant, empty or strange). Files beside a script (configurations,
modules) are mutated as well, and so are its arguments.
"""

# ruff: noqa: E501 - a row of a table holds words of one kind

from __future__ import annotations

import ast
import copy
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from tests.profiler.interpreter.test_hostile import HOSTILE
from tests.profiler.interpreter.test_language import CASES

ROOT = Path(__file__).parents[2]
KINDS = ("bytes", "tokens", "lines", "tree")
_TEXTS = {".py", ".ipynb", ".json", ".yaml", ".yml"}
_TOKEN = re.compile(r"\w+|\s+|\*\*|//|[<>=!]=|\S")
_WORDS = ["None", "0", "1", "-1", "''", "[]", "{}", "()", "lambda: x", "x", "self", "*", "**", ".", ",", ":", "(", ")", "[", "]", "\n", " ", "for", "in", "if", "else",
          "yield", "await", "async", "class", "def", "return", "raise", "del", "=", "+=", ":=", "10**9", "10**10**10", "[0]*10**12", "float('nan')", "input()", "open('/etc/passwd')",
          "open('../outside')", "__import__('os').system('id')", "exec('1')", "eval('x')", "super()", "not", "is", "@", "%", "<<", "try:\n ", "except", "with", "match", "case _",
          "while True:", "global x", "nonlocal x", "import os", "from . import x", "f'{x!r:{x}}'", "'\\ud800'", "1e999", "range(10**12)", "globals()", "locals()", "type(x)"]  # fmt: skip
_ODD: list[Any] = [
    0,
    -1,
    1,
    2**31,
    2**63,
    10**30,
    -(10**18),
    0.0,
    -0.5,
    1e300,
    True,
    None,
    "",
    "x",
    "\0",
    "../../etc/passwd",
    "%s" * 50,
    b"",
    3.5,
    "cuda",
    "-1",
    (),
]
_BYTES = [b"\0", b"\xff", b"\xef\xbb\xbf", b"# coding: utf-16\n", b"# coding: rot13\n", b"# coding: idna\n", b"\r", b"\x0c", b"\x1a", b"\\\n", b"\t", b"'''", b'"""', b"\xc3\x28"]  # fmt: skip
_LINES = ["    pass", "return", "raise", "break", "continue", "while True: pass", "import main", "from main import *", "x = [x]", "del x", "if x:", "else:", "  else:", "try:", "finally:",
          "@property", "class A(A): pass", "def f(*a, **k): return f(*a, **k)", "f()", "for i in range(10**9):", "global x", "print(x", "exit()", "%matplotlib inline", "!rm -rf /"]  # fmt: skip


@dataclass(frozen=True)
class Bundle:
    """Files by relative path, which one to begin with, and its arguments."""

    files: dict[str, bytes]
    entry: str
    arguments: tuple[str, ...] = ()


@dataclass(frozen=True)
class Mutation:
    """What one seed makes: of which original, by which kind."""

    seed: int
    origin: str
    kind: str
    bundle: Bundle


def _files_of(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.suffix in _TEXTS and "__pycache__" not in path.parts
    }


@cache
def scripts() -> tuple[tuple[str, Bundle], ...]:
    """The training scripts, each with the files of its own folder."""
    folder = ROOT / "tests" / "scripts"
    expected = yaml.safe_load((folder / "expected.yaml").read_text("utf-8"))
    out = []
    for name, row in sorted(expected.items()):
        path = folder / name
        files = _files_of(path.parent) if "/" in name else {path.name: path.read_bytes()}
        out.append((name, Bundle(files, path.name, tuple(map(str, row.get("arguments", ()))))))
    return tuple(out)


@cache
def snippets() -> tuple[tuple[str, Bundle], ...]:
    """The language's snippets and programs, and the hostile corpus."""
    found = [(f"language {name}", source) for name, (source, _) in CASES.items()]
    found += [(f"hostile {name}", source) for name, source in HOSTILE.items() if len(source) < 2_000]
    programs = ROOT / "tests" / "profiler" / "interpreter" / "programs"
    found += [(f"program {path.name}", path.read_text("utf-8")) for path in sorted(programs.glob("*.py"))]
    return tuple((name, Bundle({"main.py": source.encode()}, "main.py")) for name, source in found)


def mutation(seed: int, share_of_scripts: float = 0.15) -> Mutation:
    """The mutation that ``seed`` stands for; the same on every machine."""
    chance = random.Random(seed)
    origin, bundle = chance.choice(scripts() if chance.random() < share_of_scripts else snippets())
    kind = chance.choice(KINDS)
    names = sorted(bundle.files)
    name = bundle.entry if chance.random() < 0.7 else chance.choice(names)
    changed = _APPLY[kind](bundle.files[name], chance)
    return Mutation(
        seed, origin, kind, Bundle({**bundle.files, name: changed}, bundle.entry, _arguments(bundle, chance))
    )


def _arguments(bundle: Bundle, chance: random.Random) -> tuple[str, ...]:
    given = list(bundle.arguments)
    if chance.random() < 0.2:
        given.insert(
            chance.randrange(len(given) + 1),
            chance.choice(
                ["--help", "--", "-1", "@/etc/passwd", "", "--lr=nan", "--batch-size=99999999999", "\0", "a=b", "--x"]
            ),
        )
    return tuple(given)


def _other(chance: random.Random) -> str:
    _, bundle = chance.choice(scripts() if chance.random() < 0.5 else snippets())
    return bundle.files[bundle.entry].decode("utf-8", "replace")


def _in_bytes(data: bytes, chance: random.Random) -> bytes:
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(data) + 1)
        to = min(len(data), at + chance.randrange(30))
        match chance.randrange(5):
            case 0:
                data = data[:at] + chance.choice(_BYTES) + data[at:]
            case 1:
                data = data[:at] + bytes(chance.randrange(256) for _ in range(to - at)) + data[to:]
            case 2:
                data = data[:at] + data[to:]
            case 3:
                data = chance.choice(_BYTES) + data
            case _:
                data = (
                    data[: chance.randrange(len(data) + 1)]
                    if chance.random() < 0.3
                    else data[:at] + data[at:to] * 40 + data[to:]
                )
    return data


def _in_tokens(data: bytes, chance: random.Random) -> bytes:
    tokens = _TOKEN.findall(data.decode("utf-8", "replace"))
    names = [t for t in tokens if t.isidentifier()] or ["x"]
    for _ in range(chance.randint(1, 6)):
        at = chance.randrange(len(tokens) + 1)
        to = min(len(tokens), at + chance.randint(1, 4))
        match chance.randrange(6):
            case 0:
                del tokens[at:to]
            case 1:
                tokens[at:at] = tokens[at:to] * chance.choice((1, 1, 2, 30))
            case 2:
                tokens[at:to] = [chance.choice(_WORDS)]
            case 3:
                other = _TOKEN.findall(_other(chance))
                start = chance.randrange(len(other))
                tokens[at:to] = other[start : start + chance.randint(1, 12)]
            case 4:
                places = [i for i, t in enumerate(tokens) if t.isidentifier()]
                if places:
                    tokens[chance.choice(places)] = chance.choice(names)
            case _:
                places = [i for i, t in enumerate(tokens) if t.isdigit()]
                if places:
                    tokens[chance.choice(places)] = chance.choice(
                        ["0", "-1", "10**9", "2**63", "10**40", "None", "0.5", "''", "[1]", "1 << 70"]
                    )
    return "".join(tokens).encode("utf-8", "surrogatepass")


def _in_lines(data: bytes, chance: random.Random) -> bytes:
    lines = data.decode("utf-8", "replace").split("\n")
    for _ in range(chance.randint(1, 5)):
        at = chance.randrange(len(lines))
        to = min(len(lines), at + chance.randint(1, 5))
        match chance.randrange(6):
            case 0:
                del lines[at:to]
            case 1:
                lines[at:at] = lines[at:to]
            case 2:
                one = chance.randrange(len(lines))
                lines[at], lines[one] = lines[one], lines[at]
            case 3:
                shift = chance.choice(("    ", "  ", "\t"))
                lines[at:to] = [
                    shift + line if chance.random() < 0.5 else line.removeprefix(shift) for line in lines[at:to]
                ]
            case 4:
                other = _other(chance).split("\n")
                start = chance.randrange(len(other))
                lines[at:at] = other[start : start + chance.randint(1, 8)]
            case _:
                indent = lines[at][: len(lines[at]) - len(lines[at].lstrip())]
                lines.insert(at, indent + chance.choice(_LINES))
        lines = lines or [""]
    return "\n".join(lines).encode("utf-8", "surrogatepass")


def _in_tree(data: bytes, chance: random.Random) -> bytes:
    """Of files that are no Python, tokens are changed instead."""
    try:
        tree = ast.parse(data)
        for _ in range(chance.randint(1, 5)):
            chance.choice(_CHANGES)(tree, chance)
        return ast.unparse(ast.fix_missing_locations(tree)).encode("utf-8", "surrogatepass")
    except (SyntaxError, ValueError, RecursionError, MemoryError, TypeError, AttributeError, IndexError):
        return _in_tokens(data, chance)


def _blocks(tree: ast.AST) -> list[list[ast.stmt]]:
    return [
        block
        for node in ast.walk(tree)
        for field in ("body", "orelse", "finalbody")
        if isinstance(block := getattr(node, field, None), list) and block
    ]


def _places(tree: ast.AST) -> list[tuple[ast.AST, str, int | None, ast.expr]]:
    """Where an expression that is read stands: its holder, the field, and its index in a list."""
    found: list[tuple[ast.AST, str, int | None, ast.expr]] = []
    for node in ast.walk(tree):
        for field, value in ast.iter_fields(node):
            for at, one in enumerate(value) if isinstance(value, list) else [(None, value)]:
                if (
                    isinstance(one, ast.expr)
                    and not isinstance(getattr(one, "ctx", None), (ast.Store, ast.Del))
                    and field not in ("targets", "target")
                ):
                    found.append((node, field, at, one))
    return found


def _put(place: tuple[ast.AST, str, int | None, ast.expr], new: ast.expr) -> None:
    holder, field, at, _ = place
    if at is None:
        setattr(holder, field, new)
    else:
        getattr(holder, field)[at] = new


def _statement(tree: ast.AST, chance: random.Random) -> None:
    block = chance.choice(_blocks(tree))
    at = chance.randrange(len(block))
    match chance.randrange(4):
        case 0:
            block[at : at + 1] = [] if len(block) > 1 else [ast.Pass()]
        case 1:
            block.insert(at, copy.deepcopy(block[at]))
        case 2:
            other = chance.choice(_blocks(tree))
            block[at] = copy.deepcopy(chance.choice(other))
        case _:
            one = chance.randrange(len(block))
            block[at], block[one] = block[one], block[at]


def _wrapped(tree: ast.AST, chance: random.Random) -> None:
    block = chance.choice(_blocks(tree))
    at = chance.randrange(len(block))
    kept = block[at]
    head = chance.choice(["if unknown: pass", "while True: pass", "for _ in range(10 ** 9): pass", "for _ in unknown: pass", "try: pass\nexcept Exception: raise", "try: pass\nfinally: pass",
                          "with unknown as w: pass", "def f(self, *a, **k): pass", "class A(A): pass", "while unknown(): pass", "async def f(): pass"])  # fmt: skip
    new = ast.parse(head).body[0]
    new.body = [kept]  # type: ignore[attr-defined]
    block[at] = new


def _expression(tree: ast.AST, chance: random.Random) -> None:
    places = _places(tree)
    place = chance.choice(places)
    old = place[3]
    match chance.randrange(8):
        case 0:
            new: ast.expr = ast.Constant(chance.choice(_ODD))
        case 1:
            new = copy.deepcopy(chance.choice(places)[3])
        case 2:
            new = ast.Call(copy.deepcopy(old), [], [])
        case 3:
            new = ast.Call(ast.Name("unknown", ast.Load()), [old], [])
        case 4:
            new = ast.Subscript(old, ast.Constant(chance.choice(_ODD)), ast.Load())
        case 5:
            new = ast.BinOp(
                old,
                chance.choice([ast.Mult(), ast.Pow(), ast.LShift(), ast.MatMult(), ast.Mod(), ast.FloorDiv()]),
                copy.deepcopy(chance.choice(places)[3]),
            )
        case 6:
            new = ast.IfExp(ast.Name("unknown", ast.Load()), old, copy.deepcopy(chance.choice(places)[3]))
        case _:
            new = ast.parse(chance.choice([w for w in _WORDS if _parses(w)]), mode="eval").body
    _put(place, new)


@cache
def _parses(text: str) -> bool:
    try:
        ast.parse(text, mode="eval")
    except SyntaxError:
        return False
    return True


def _call(tree: ast.AST, chance: random.Random) -> None:
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    if not calls:
        return
    call = chance.choice(calls)
    match chance.randrange(5):
        case 0 if call.args:
            call.args.pop(chance.randrange(len(call.args)))
        case 1 if call.keywords:
            call.keywords.pop(chance.randrange(len(call.keywords)))
        case 2:
            chance.shuffle(call.args)
        case 3:
            call.args.append(ast.Starred(ast.Name("x", ast.Load()), ast.Load()))
        case _:
            call.args, call.keywords = copy.deepcopy((chance.choice(calls).args, chance.choice(calls).keywords))


def _name(tree: ast.AST, chance: random.Random) -> None:
    names = [node for node in ast.walk(tree) if isinstance(node, (ast.Name, ast.Attribute))]
    if len(names) > 1:
        one, other = chance.sample(names, 2)
        text = other.id if isinstance(other, ast.Name) else other.attr
        if isinstance(one, ast.Name):
            one.id = text
        else:
            one.attr = text


_CHANGES: Sequence[Callable[[ast.AST, random.Random], None]] = (
    _statement,
    _wrapped,
    _expression,
    _expression,
    _call,
    _name,
)
_APPLY: dict[str, Callable[[bytes, random.Random], bytes]] = {
    "bytes": _in_bytes,
    "tokens": _in_tokens,
    "lines": _in_lines,
    "tree": _in_tree,
}
