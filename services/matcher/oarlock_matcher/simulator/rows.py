"""Rows of a CSV or YAML file, each knowing its line, whose fields either are what they should be or say what is wrong.

A file is read whole before anything is made of it: the first fault ends it, so nothing is ever half-read.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import yaml

SHOWN_CHARACTERS = 60
YES = {"true", "yes", "1", "y"}
NO = {"false", "no", "0", "n"}


class BadFile(Exception):
    """A fleet or workload file that cannot be used; the message says which, where, why and how to mend it."""


@dataclass(frozen=True, slots=True)
class Row:
    """One entry of a file. `line` counts from 1. Empty fields count as absent."""

    path: Path
    line: int
    fields: Mapping[str, Any]

    def bad(self, what: str, how: str) -> NoReturn:
        """
        Raises:
            BadFile: always.
        """
        raise BadFile(f"{self.path}:{self.line}: {what}. {how}")

    def has(self, *names: str) -> bool:
        """Whether the file has all of these fields in this row, be they empty."""
        return all(name in self.fields for name in names)

    def value(self, name: str) -> Any:
        """The field as it stands; `None` where it is absent or empty."""
        found = self.fields.get(name)
        if isinstance(found, str):
            found = found.strip()
        return None if found in (None, "") else found

    def text(self, name: str) -> str | None:
        found = self.value(name)
        if isinstance(found, list | dict):
            self.bad(f"`{name}` is {_kind(found)}", f"Write one word or number for `{name}`")
        return None if found is None else str(found)

    def needed_text(self, name: str) -> str:
        found = self.text(name)
        if found is None:
            self.bad(f"`{name}` is missing", f"Give every row a `{name}`")
        return found

    def number(self, name: str, least: float = 0.0) -> float | None:
        """A finite number of at least `least`; `None` where it is absent."""
        found = self.value(name)
        if found is None:
            return None
        try:
            number = math.nan if isinstance(found, bool | list | dict) else float(found)
        except ValueError:
            number = math.nan
        if not math.isfinite(number) or number < least:
            shown = str(found)[:SHOWN_CHARACTERS]
            self.bad(f"`{name}` is {shown!r}", f"Write a number of at least {least:g}, or leave it out")
        return number

    def needed_number(self, name: str, least: float = 0.0) -> float:
        found = self.number(name, least)
        if found is None:
            self.bad(f"`{name}` is missing", f"Write a number of at least {least:g} for `{name}`")
        return found

    def whole(self, name: str, least: float = 0.0) -> int | None:
        """A whole number (`8.0` is one, as some programs write columns with gaps so); `None` where it is absent."""
        found = self.number(name, least)
        if found is not None and found != int(found):
            self.bad(f"`{name}` is {found:g}", "Write a whole number")
        return None if found is None else int(found)

    def needed_whole(self, name: str, least: float = 0.0) -> int:
        found = self.whole(name, least)
        if found is None:
            self.bad(f"`{name}` is missing", f"Write a whole number of at least {least:g} for `{name}`")
        return found

    def yes(self, name: str) -> bool:
        """Absent means no."""
        found = (self.text(name) or "no").lower()
        if found not in YES | NO:
            self.bad(f"`{name}` is {found[:SHOWN_CHARACTERS]!r}", "Write true or false")
        return found in YES

    def words(self, name: str) -> tuple[str, ...]:
        """A list, or words between `|`."""
        found = self.value(name)
        if found is None:
            return ()
        parts = found if isinstance(found, list) else str(found).split("|")
        if isinstance(found, dict) or any(isinstance(part, list | dict) for part in parts):
            self.bad(f"`{name}` is {_kind(found)}", "Write names, as a list or with | between them")
        return tuple(word for part in parts if (word := str(part).strip()))

    def rows(self, name: str) -> tuple[Row, ...]:
        """A list of mappings; absent means none."""
        found = self.value(name)
        if found is None:
            return ()
        if not isinstance(found, list) or not all(isinstance(part, dict) for part in found):
            self.bad(f"`{name}` is {_kind(found)}", f"Write a list of mappings under `{name}:`")
        return tuple(Row(self.path, self.line, part) for part in found)

    def numbers(self, name: str) -> dict[str, float]:
        """A mapping of names to positive numbers; absent means empty."""
        found = self.value(name)
        if found is None:
            return {}
        if not isinstance(found, dict):
            self.bad(f"`{name}` is {_kind(found)}", "Write a mapping such as {A100: 0.2}")
        inner = Row(self.path, self.line, {str(key): value for key, value in found.items()})
        return {key: inner.needed_number(key) for key in inner.fields}


def read_text(path: Path) -> str:
    """The file's text, without the mark that some editors put before it.

    Raises:
        BadFile: it cannot be read, or is not UTF-8.
    """
    try:
        return path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise BadFile(f"{path}: cannot be read: {error.strerror or error}. Give the path of a file") from error
    except UnicodeDecodeError as error:
        raise BadFile(f"{path}: is not UTF-8 at byte {error.start}. Save it as UTF-8") from error


def rows_of(path: Path, text: str, what: str) -> list[Row]:
    """The rows of a CSV file, or the entries under `what:` of a YAML one.

    Raises:
        BadFile: no such layout, or a row that does not match its header.
    """
    found = list(_csv_rows(path, text) if path.suffix.lower() == ".csv" else _yaml_rows(path, text, what))
    if not found:
        raise BadFile(f"{path}: no {what} in it. Write at least one")
    return found


def _csv_rows(path: Path, text: str) -> Iterator[Row]:
    if "\0" in text:
        raise BadFile(f"{path}: has null bytes in it. Save it as plain text")
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    header: list[str] | None = None
    begins = 1
    try:
        for cells in reader:
            line, begins = begins, reader.line_num + 1
            if not any(cell.strip() for cell in cells):
                continue
            if header is None:
                header = _header(path, line, cells)
            elif len(cells) != len(header):
                raise BadFile(
                    f"{path}:{line}: has {len(cells)} fields, the header has {len(header)}. "
                    f"Give it one field for each of {', '.join(header)}; put fields with commas into quotes"
                )
            else:
                yield Row(path, line, dict(zip(header, cells, strict=True)))
    except csv.Error as error:
        raise BadFile(
            f"{path}:{begins}: is not CSV: {error}. Close every quote, and double those in a field"
        ) from error


def _header(path: Path, line: int, cells: Sequence[str]) -> list[str]:
    names = [cell.strip() for cell in cells]
    twice = sorted({name for name in names if name and names.count(name) > 1})
    if twice:
        raise BadFile(f"{path}:{line}: column {twice[0]!r} stands in the header twice. Keep one of them")
    if len(names) == 1 and any(mark in names[0] for mark in ";\t"):
        raise BadFile(f"{path}:{line}: the fields are not divided by commas. Save it with commas")
    return names


def _yaml_rows(path: Path, text: str, what: str) -> Iterator[Row]:
    loader = yaml.SafeLoader(text)
    try:
        root = loader.get_single_node()
        found = None if root is None else loader.construct_document(root)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = path if mark is None else f"{path}:{mark.line + 1}"
        raise BadFile(f"{place}: is not YAML: {getattr(error, 'problem', None) or error}. Mend the syntax") from error
    except (RecursionError, ValueError, TypeError) as error:
        raise BadFile(f"{path}: is not YAML that can be used: {error}. Write plain lists and mappings") from error
    finally:
        loader.dispose()
    entries = found.get(what) if isinstance(found, dict) else None
    if not isinstance(entries, list) or not isinstance(root, yaml.MappingNode):
        raise BadFile(f"{path}: has no list under `{what}:`. Begin it with `{what}:`, or end its name in .csv")
    under = next(value for key, value in root.value if key.value == what)
    for number, entry in enumerate(entries):
        line = under.value[number].start_mark.line + 1
        if not isinstance(entry, dict):
            raise BadFile(f"{path}:{line}: is {_kind(entry)}. Write a mapping for each entry of `{what}:`")
        yield Row(path, line, entry)


def _kind(value: object) -> str:
    if isinstance(value, dict):
        return "a mapping"
    return "a list" if isinstance(value, list) else repr(value)[:SHOWN_CHARACTERS]
