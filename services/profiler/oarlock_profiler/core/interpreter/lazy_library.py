"""Library source is read only as far as a script needs it.

Importing ``torchvision.models`` for one network would interpret two hundred files. So the imports at the top of a
library module bind :class:`Lazy` placeholders that are loaded when their name is first read, and ``from .x import *``
is searched only for names that are missing. A registry that decorators fill (``timm``'s and ``torchvision``'s model
tables) is completed when a lookup fails: the module that defines a function or class of that name is loaded then.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from oarlock_profiler.core.interpreter.values import MISSING, Module, Value

if TYPE_CHECKING:
    from oarlock_profiler.core.interpreter.importer import Importer

_DEFINED = re.compile(rb"^(?:class|def|async def)[ \t]+(\w+)|^(\w+)(?:[ \t]*:[^=\n]+)?[ \t]*=[^=]", re.MULTILINE)
_LISTED = re.compile(rb"^__all__\s*\+?=\s*[\[(]([^\])]*)[\])]", re.MULTILINE)
_QUOTED = re.compile(rb"[\"'](\w+)[\"']")


class Lazy:
    """A name imported by a library module and not yet read: ``module`` or ``module.name``."""

    __slots__ = ("bound", "module", "name")

    def __init__(self, module: str, name: str | None, bound: str | None = None) -> None:
        self.module = module
        self.name = name
        self.bound = bound


class LazyLibrary:
    """Placeholders and star imports of one reading."""

    def __init__(self, importer: Importer) -> None:
        self.importer = importer
        self.stars: dict[str, list[str]] = {}
        self._words: dict[str, frozenset[str]] = {}
        self._searching: set[tuple[str, str]] = set()
        self._pending: dict[str, None] = {}
        self._owners: dict[str, list[str]] = {}
        self._failed: set[str] = set()

    # -- placeholders --------------------------------------------------------------------------------------------

    def wake(self, lazy: Lazy, attrs: dict[str, Value], name: str) -> Value:
        """Load what ``lazy`` stands for and put it in its place."""
        importer = self.importer
        if lazy.name is None:
            module = importer.load(lazy.module)
            value = importer.top(lazy.module, module) if lazy.bound is None else module
        else:
            value = importer.member_of(lazy.module, lazy.name)
        if name in attrs:
            attrs[name] = value
        return value

    def add_star(self, owner: str, source: str) -> None:
        """``from source import *`` in library module ``owner``."""
        sources = self.stars.setdefault(owner, [])
        if source not in sources:
            sources.append(source)
            if source not in self.importer.modules:
                self._pending[source] = None

    def search(self, module: Module, name: str) -> Value:
        """``name`` in the star imports of ``module``: the likeliest sources first."""
        sources = self.stars.get(module.name)
        if not sources or name.startswith("__"):
            return MISSING
        mark = (module.name, name)
        if mark in self._searching:
            return MISSING
        self._searching.add(mark)
        try:
            for source in self._ranked(sources, name):
                found = self._look(source, name)
                if found is not MISSING:
                    module.attrs[name] = found
                    return found
        finally:
            self._searching.discard(mark)
        return MISSING

    def _look(self, source: str, name: str) -> Value:
        if not self._may_hold(source, name):
            return MISSING
        loaded = self.importer.load(source)
        self._pending.pop(source, None)
        return self.importer.attribute(loaded, name) if isinstance(loaded, Module) else MISSING

    def _ranked(self, sources: list[str], name: str) -> list[str]:
        """Later imports win in Python; those named like ``name`` are tried before."""
        lowered = name.lower().replace("_", "")

        def likeness(source: str) -> int:
            last = source.rpartition(".")[2].lower().replace("_", "")
            return -len(last) if lowered.startswith(last) else 0

        return sorted(reversed(sources), key=likeness)

    def _may_hold(self, source: str, name: str) -> bool:
        """Whether ``source`` may define ``name``: its text says so, or it imports stars of its own."""
        words = self.words(source)
        return name in words or "*" in words

    def words(self, source: str) -> frozenset[str]:
        """Names that a module's text defines, lists or imports; ``*`` when it has star imports."""
        known = self._words.get(source)
        if known is None:
            found = self.importer.library_text(source)
            data = found if found is not None else b""
            names = {(a or b).decode() for a, b in _DEFINED.findall(data)}
            for listed in _LISTED.findall(data):
                names.update(q.decode() for q in _QUOTED.findall(listed))
            names.update(_imported(data))
            known = self._words[source] = frozenset(names)
        return known

    # -- registries ----------------------------------------------------------------------------------------------

    def complete(self, key: Value) -> bool:
        """A lookup of ``key`` failed in library code: load the pending modules that define it. True if any was."""
        if not self._pending or not isinstance(key, str) or not key.isidentifier() or key in self._failed:
            return False
        if not self._owners:
            self._index()
        owners = [o for o in self._owners.get(key, ()) if o in self._pending]
        if not owners:
            self._failed.add(key)
            return False
        for owner in owners:
            self._pending.pop(owner, None)
            self.importer.load(owner)
        self._owners = {}
        return True

    def _index(self) -> None:
        for source in list(self._pending):
            for word in self.words(source):
                self._owners.setdefault(word, []).append(source)


def _imported(data: bytes) -> set[str]:
    names: set[str] = set()
    for match in re.finditer(rb"^[ \t]*from[ \t]+[\w.]+[ \t]+import[ \t]+(\([^)]*\)|[^\n]*)", data, re.MULTILINE):
        body = re.sub(rb"#[^\n]*", b"", match.group(1))
        if body.strip() == b"*":
            names.add("*")
            continue
        for part in body.strip(b"()").split(b","):
            word = part.split()
            if word:
                names.add(word[-1].decode("utf-8", "replace"))
    for match in re.finditer(rb"^import[ \t]+([^\n#]+)", data, re.MULTILINE):
        for part in match.group(1).split(b","):
            word = part.split()
            if word:
                names.add((word[-1] if b"as" in word else word[0].partition(b".")[0]).decode("utf-8", "replace"))
    return names


def open_type_checking(tree: ast.Module) -> None:
    """In a package whose ``__init__`` replaces itself by a lazy module, read its ``if TYPE_CHECKING`` side: it lists the
    same names as plain imports, which are lazy here anyway."""
    for node in tree.body:
        if isinstance(node, ast.If) and any(isinstance(n, ast.Name) and n.id == "TYPE_CHECKING" for n in ast.walk(node.test)):
            node.test = ast.copy_location(ast.Constant(True), node.test)
            node.orelse = []


