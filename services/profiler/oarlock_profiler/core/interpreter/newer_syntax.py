"""Syntax newer than the Python that reads: rewritten so that its parser takes it, with every line where it was.

Python 3.12 brought ``type X = …``, ``def f[T](…)``, ``class C[T]`` and f-strings whose expressions may hold any quotes,
backslashes and comments (PEP 695, PEP 701). Types are of no consequence to a reading, so type parameters become names
of no meaning; an f-string that does not parse becomes the text it adds up to.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
import warnings

_OPENING = re.compile(r"(?P<prefix>[A-Za-z]{0,2})(?P<quote>'''|\"\"\"|'|\")")
_NO_MEANING = "object"
NOWHERE = "/dev/null/source"
"""The file name that the host's parser is told. For the text of a syntax error CPython opens the file of that name,
which must never be one that happens to lie in our own working folder: nothing can lie below what is no folder."""
_MOST_NESTED = 20


class CannotRewrite(ValueError):
    """The text is not what newer Pythons would take either."""


def parse(source: str) -> ast.Module:
    """``ast.parse``, also for syntax that is newer than this Python.

    Raises:
        SyntaxError: no Python up to 3.13 takes it (as the host's own parser puts it).
        ValueError: as ``ast.parse``.
    """
    try:
        return plain(ast.parse(source, NOWHERE), ())
    except SyntaxError:
        try:
            rewritten, names = older(source)
            if rewritten == source:
                raise
            return plain(ast.parse(rewritten, NOWHERE), names)
        except (SyntaxError, CannotRewrite, tokenize.TokenError, IndentationError):
            pass
        raise


def plain(tree: ast.Module, names: tuple[str, ...]) -> ast.Module:
    """``tree`` without type parameters and ``type`` statements; their names stand for nothing in particular."""
    alias = getattr(ast, "TypeAlias", None)
    found = dict.fromkeys(names)
    if alias is not None:
        _strip(tree, alias, found)
    assigned = [
        ast.copy_location(ast.Assign([ast.Name(name, ast.Store())], ast.Name(_NO_MEANING, ast.Load())), tree.body[0])
        for name in found
    ]
    start = 1 if tree.body and ast.get_docstring(tree, clean=False) is not None else 0
    while start < len(tree.body) and _is_future(tree.body[start]):
        start += 1
    tree.body[start:start] = [ast.fix_missing_locations(one) for one in assigned]
    return tree


def _is_future(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"


def _strip(tree: ast.Module, alias: type[ast.stmt], found: dict[str, None]) -> None:
    for node in ast.walk(tree):
        parameters = getattr(node, "type_params", None)
        if parameters:
            found.update(dict.fromkeys(p.name for p in parameters))
            node.type_params = []  # type: ignore[attr-defined]
        for field in ("body", "orelse", "finalbody"):
            block = getattr(node, field, None)
            if isinstance(block, list):
                block[:] = [_assignment(s, found) if isinstance(s, alias) else s for s in block]


def _assignment(node: ast.stmt, found: dict[str, None]) -> ast.stmt:
    found.update(dict.fromkeys(p.name for p in node.type_params))  # type: ignore[attr-defined]
    target, value = node.name, node.value  # type: ignore[attr-defined]
    return ast.copy_location(ast.Assign([target], value), node)


def older(source: str) -> tuple[str, tuple[str, ...]]:
    """``source`` for older parsers, and the names of its type parameters.

    Raises:
        CannotRewrite: a string does not end.
    """
    return _without_type_parameters(_without_new_strings(source))


# -- f-strings -------------------------------------------------------------------------------------------------------


def _without_new_strings(source: str) -> str:
    out: list[str] = []
    at = level = 0
    while at < len(source):
        char = source[at]
        if char == "#":
            end = source.find("\n", at)
            end = len(source) if end < 0 else end
            out.append(source[at:end])
            at = end
        elif (opening := _opening(source, at)) is None:
            level += (char in "([{") - (char in ")]}")
            out.append(char)
            at += 1
        else:
            text, at = _strings(source, at, opening, bracketed=level > 0)
            out.append(text)
    return "".join(out)


def _strings(source: str, at: int, opening: re.Match[str], *, bracketed: bool) -> tuple[str, int]:
    """Strings that stand side by side, added up where one of them is new; and the index after them."""
    blank = re.compile(r"(?:[ \t\f]|\\\r?\n|\r?\n|#[^\n]*\n)*" if bracketed else r"(?:[ \t\f]|\\\r?\n)*")
    parts: list[str] = []
    gaps: list[str] = []
    changed = False
    following: re.Match[str] | None = opening
    while following is not None:
        end = _string_end(source, at, following, 0)
        text = source[at:end]
        new = _is_formatted(following) and not _parses(text)
        parts.append(_joined(text, following) if new else text)
        changed = changed or new
        gap = blank.match(source, end)
        at = gap.end() if gap is not None else end
        following = _opening(source, at) if at < len(source) else None
        gaps.append(source[end:at])
    if not changed:
        return "".join(part + gap for part, gap in zip(parts, gaps, strict=True)), at
    inner = "".join(f"{part}{gap}+ " for part, gap in zip(parts[:-1], gaps[:-1], strict=True))
    return f"({inner}{parts[-1]}){gaps[-1]}", at


def _opening(source: str, at: int) -> re.Match[str] | None:
    if at and (source[at - 1].isalnum() or source[at - 1] == "_"):
        return _OPENING.match(source, at) if source[at] in "'\"" else None
    found = _OPENING.match(source, at)
    if found is None or found["prefix"].lower() not in {"", "r", "b", "u", "f", "rb", "br", "rf", "fr"}:
        return None
    return found


def _is_formatted(opening: re.Match[str]) -> bool:
    return "f" in opening["prefix"].lower()


def _parses(text: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(f"({text})", mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _string_end(source: str, at: int, opening: re.Match[str], depth: int) -> int:
    """The index after the string that begins at ``at``; inside an f-string, expressions may hold strings."""
    if depth > _MOST_NESTED:
        raise CannotRewrite("strings nested too deeply")
    quote, formatted = opening["quote"], _is_formatted(opening)
    at = opening.end()
    while at < len(source):
        if source.startswith(quote, at):
            return at + len(quote)
        if source[at] == "\\":
            at += 2
        elif formatted and source[at] == "{":
            at = at + 2 if source.startswith("{{", at) else _field_end(source, at, quote, depth)
        elif source[at] == "\n" and len(quote) == 1:
            break
        else:
            at += 1
    raise CannotRewrite("a string does not end")


def _field_end(source: str, at: int, quote: str, depth: int) -> int:
    """The index after the ``}`` of the field that begins at ``at``."""
    return _split_field(source, at, quote, depth)[-1]


def _split_field(source: str, at: int, quote: str, depth: int) -> tuple[str, bool, str, str | None, int]:
    """A field's expression, whether it ends in ``=``, its conversion, its format, and the index after it."""
    start, at, level = at + 1, at + 1, 0
    while at < len(source):
        char = source[at]
        opening = _opening(source, at)
        if opening is not None:
            at = _string_end(source, at, opening, depth + 1)
            continue
        if char == "#":
            at = source.find("\n", at)
            if at < 0:
                break
            continue
        if char in "([{":
            level += 1
        elif char in ")]}" and level:
            level -= 1
        elif not level and (char in "}:" or (char == "!" and source[at + 1 : at + 2] != "=")):
            break
        at += 1
    expression = source[start:at]
    conversion, spec = "", None
    if source.startswith("!", at):
        conversion = source[at + 1 : at + 2]
        at += 2
    if source.startswith(":", at):
        begin = at = at + 1
        while at < len(source) and source[at] != "}":
            if source[at] == "{":
                at = _field_end(source, at, quote, depth + 1)
            elif source.startswith(quote, at):
                raise CannotRewrite("a format does not end")
            else:
                at += 1
        spec = source[begin:at]
    if not source.startswith("}", at):
        raise CannotRewrite("a field does not end")
    stripped = re.sub(r"#[^\n]*", "", expression) if "#" in expression and "\n" in expression else expression
    shows = bool(re.search(r"(?<![=!<>])=\s*$", stripped))
    return stripped, shows, conversion, spec, at + 1


def _joined(text: str, opening: re.Match[str]) -> str:
    """An f-string as a sum of texts, in parentheses."""
    quote = opening["quote"]
    raw = "r" if "r" in opening["prefix"].lower() else ""
    body_end = len(text) - len(quote)
    at, literal = len(opening.group()), ""
    parts: list[str] = []

    def flush() -> None:
        nonlocal literal
        if literal:
            parts.append(f"{raw}{quote}{literal}{quote}")
        literal = ""

    while at < body_end:
        if text.startswith(("{{", "}}"), at):
            literal += text[at]
            at += 2
        elif text[at] == "\\" and not raw:
            literal += text[at : at + 2]
            at += 2
        elif text[at] == "{":
            expression, shows, conversion, spec, at = _split_field(text, at, quote, 0)
            if shows:
                parts.append(repr(expression))
                expression = expression.rstrip()[:-1]
                conversion = conversion or ("r" if spec is None else "")
            flush_before = literal
            if flush_before:
                parts.insert(len(parts) - (1 if shows else 0), f"{raw}{quote}{literal}{quote}")
                literal = ""
            parts.append(_formatted(expression, conversion, spec, quote))
        else:
            literal += text[at]
            at += 1
    flush()
    return f"({' + '.join(parts) or repr('')})"


def _formatted(expression: str, conversion: str, spec: str | None, quote: str) -> str:
    inner = _without_new_strings(f"({expression})")
    if conversion:
        inner = f"{ {'r': 'repr', 's': 'str', 'a': 'ascii'}.get(conversion, 'str') }({inner})"
    if spec is None:
        return f"format({inner})"
    return f"format({inner}, {_without_new_strings(f'f{quote}{spec}{quote}')})"


# -- type parameters -------------------------------------------------------------------------------------------------


def _without_type_parameters(source: str) -> tuple[str, tuple[str, ...]]:
    tokens = [
        token
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type not in (tokenize.NL, tokenize.COMMENT)
    ]
    cuts: list[tuple[tuple[int, int], tuple[int, int]]] = []
    names: dict[str, None] = {}
    first = True
    for index, token in enumerate(tokens):
        if token.type in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT) or token.string in (";", ":"):
            first = True
            continue
        after = tokens[index + 1 : index + 3]
        named = len(after) == 2 and after[0].type == tokenize.NAME
        if first and token.string == "type" and named and after[1].string in ("=", "["):
            cuts.append((token.start, after[0].start))
            if after[1].string == "[":
                cuts.append(_bracket(tokens, index + 2, names))
        elif token.string in ("def", "class") and named and after[1].string == "[":
            cuts.append(_bracket(tokens, index + 2, names))
        first = False
    lines = source.splitlines(keepends=True)
    for start, end in sorted(cuts, reverse=True):
        if start[0] == end[0]:
            line = lines[start[0] - 1]
            lines[start[0] - 1] = line[: start[1]] + line[end[1] :]
            continue
        # the lines stay, joined by backslashes, so that what follows keeps its number
        lines[start[0] - 1] = lines[start[0] - 1][: start[1]] + "\\\n"
        for number in range(start[0], end[0] - 1):
            lines[number] = "\\\n"
        lines[end[0] - 1] = lines[end[0] - 1][end[1] :]
    return "".join(lines), tuple(names)


def _bracket(
    tokens: list[tokenize.TokenInfo], index: int, names: dict[str, None]
) -> tuple[tuple[int, int], tuple[int, int]]:
    """From ``[`` at ``index`` to after its ``]``; the parameters' names are noted."""
    level, start, fresh = 0, tokens[index].start, True
    for token in tokens[index:]:
        if token.string in "([{" and token.type == tokenize.OP:
            level += 1
        elif token.string in ")]}" and token.type == tokenize.OP:
            level -= 1
            if level == 0:
                return start, token.end
        elif level == 1 and fresh and token.type == tokenize.NAME:
            names[token.string] = None
            fresh = False
        elif level == 1 and token.string == ",":
            fresh = True
    raise CannotRewrite("a bracket does not close")
