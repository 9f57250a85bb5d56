"""Library source is read only as far as a script needs it.

Importing ``torchvision.models`` for one network would interpret two hundred files. So the imports at the top of a
library module bind :class:`Lazy` placeholders that are loaded when their name is first read, and ``from .x import *``
is searched only for names that are missing. A registry that decorators fill (``timm``'s and ``torchvision``'s model
tables) is completed when a lookup fails: the module that defines a function or class of that name is loaded then.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from oarlock_profiler.core.interpreter.values import MISSING, Module, Unknown, Value

if TYPE_CHECKING:
    from oarlock_profiler.core.interpreter.importer import Importer

_DEFINED = re.compile(rb"^(?:class|def|async def)[ \t]+(\w+)|^(\w+)(?:[ \t]*:[^=\n]+)?[ \t]*=[^=]", re.MULTILINE)
_LISTED = re.compile(rb"^__all__\s*\+?=\s*[\[(]([^\])]*)[\])]", re.MULTILINE)
_QUOTED = re.compile(rb"[\"'](\w+)[\"']")
_STAR = re.compile(rb"^[ \t]*from[ \t]+(\.*)([\w.]*)[ \t]+import[ \t]+\*", re.MULTILINE)
_ANY_STAR = re.compile(rb"import[ \t]+\*")
_MOST_PENDING = 300
"""More modules than that are no registry's package, and searching their text would take seconds."""

UNREAD = frozenset(
    {
        "transformers.utils.auto_docstring.auto_docstring",
        "transformers.utils.auto_docstring.auto_class_docstring",
        "transformers.utils.auto_docstring.auto_method_docstring",
        "transformers.utils.doc.add_start_docstrings",
        "transformers.utils.doc.add_start_docstrings_to_model_forward",
        "transformers.utils.doc.add_end_docstrings",
        "transformers.utils.doc.add_code_sample_docstrings",
        "transformers.utils.doc.replace_return_docstrings",
        "transformers.models.auto.auto_factory.auto_class_update",
    }
)
"""Library decorators that only write documentation, at a cost: they are taken to return what they are given."""


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
        self._definitions: dict[str, frozenset[str]] = {}
        self._inner: dict[str, tuple[str, ...]] = {}
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
        # while the module is still running it may yet define the name
        settled = not isinstance(value, Unknown) or lazy.module not in importer.running
        if name in attrs and settled:
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

    def shadows(self, module: Module, full: str, name: str) -> bool:
        """Whether ``from .name import *`` gives the package a ``name`` of its own in place of the submodule."""
        return full in self.stars.get(module.name, ()) and name in self.words(full)

    def _look(self, source: str, name: str) -> Value:
        loaded = self.importer.load(source)
        self._pending.pop(source, None)
        return self.importer.attribute(loaded, name) if isinstance(loaded, Module) else MISSING

    def _ranked(self, sources: list[str], name: str) -> Iterator[str]:
        """Sources that may define ``name``: those called like it first, then later imports (which win in Python)."""
        lowered = name.lower().replace("_", "")

        def likeness(source: str) -> int:
            last = source.rpartition(".")[2].lower().replace("_", "")
            return -len(last) if lowered.startswith(last) else 0

        later_first = list(reversed(sources))
        for source in sorted(later_first, key=likeness):
            if self._may_hold(source, name, 0):
                yield source

    def _may_hold(self, source: str, name: str, depth: int) -> bool:
        """Whether the text of ``source``, or of what it imports by star, mentions ``name`` as its own."""
        text = self.importer.library_text(source)
        # most texts do not hold the name anywhere, and that is found faster than all their names are
        if text is not None and name.encode() in text and name in self.words(source):
            return True
        return depth < 4 and any(self._may_hold(inner, name, depth + 1) for inner in self._star_texts(source))

    def _star_texts(self, source: str) -> tuple[str, ...]:
        """Modules that the text of ``source`` imports by star, by full name."""
        known = self._inner.get(source)
        if known is None:
            data = self.importer.library_text(source) or b""
            if _ANY_STAR.search(data) is None:
                self._inner[source] = ()
                return ()
            is_package = self.importer.is_library_package(source)
            found = []
            for dots, name in _STAR.findall(data):
                base = source.split(".")
                up = len(dots) - (1 if is_package else 0)
                base = base[: len(base) - up] if dots else []
                found.append(".".join([*base, *([name.decode()] if name else [])]))
            known = self._inner[source] = tuple(f for f in found if f != source)
        return known

    def words(self, source: str) -> frozenset[str]:
        """Names that a module's text defines, lists or imports; ``*`` when it has star imports."""
        known = self._words.get(source)
        if known is None:
            found = self.importer.library_text(source)
            data = found if found is not None else b""
            names = set(self._defined(source, data))
            for listed in _LISTED.findall(data):
                names.update(q.decode() for q in _QUOTED.findall(listed))
            names.update(_imported(data))
            known = self._words[source] = frozenset(names)
        return known

    def _defined(self, source: str, data: bytes | None = None) -> frozenset[str]:
        """Names of the functions, classes and variables of a module's top level."""
        known = self._definitions.get(source)
        if known is None:
            if data is None:
                data = self.importer.library_text(source) or b""
            known = self._definitions[source] = frozenset((a or b).decode() for a, b in _DEFINED.findall(data))
        return known

    # -- registries ----------------------------------------------------------------------------------------------

    def complete(self, key: Value) -> bool:
        """A lookup of ``key`` failed in library code: load the pending modules that define it. True if any was."""
        if (
            not 0 < len(self._pending) <= _MOST_PENDING
            or not isinstance(key, str)
            or not key.isidentifier()
            or key in self._failed
        ):
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
            for word in self._defined(source):
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
    """In a package whose ``__init__`` replaces itself by a lazy module, read its ``if TYPE_CHECKING`` side:
    it lists the same names as plain imports, which are lazy here anyway."""
    for node in tree.body:
        if isinstance(node, ast.If) and any(
            isinstance(n, ast.Name) and n.id == "TYPE_CHECKING" for n in ast.walk(node.test)
        ):
            node.test = ast.copy_location(ast.Constant(True), node.test)
            node.orelse = []
