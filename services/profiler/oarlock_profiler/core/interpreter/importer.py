"""Imports: the bundle first, then the table of library names, then library source, else an unknown by name.

Nothing is imported by the host: source is text from :class:`Sources`, parsed and interpreted.
"""

from __future__ import annotations

import ast
import posixpath
import sys
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING

from oarlock_profiler.core.frameworks import NAMES
from oarlock_profiler.core.interpreter import newer_syntax
from oarlock_profiler.core.interpreter.compiler import Compiler
from oarlock_profiler.core.interpreter.descriptors import Property
from oarlock_profiler.core.interpreter.errors import EXCEPTIONS, Raised
from oarlock_profiler.core.interpreter.frames import Frame
from oarlock_profiler.core.interpreter.guarded import Border
from oarlock_profiler.core.interpreter.lazy_library import Lazy, LazyLibrary, open_type_checking
from oarlock_profiler.core.interpreter.mangling import mangle
from oarlock_profiler.core.interpreter.source_text import decode
from oarlock_profiler.core.interpreter.values import MISSING, Module, Unknown, Value
from oarlock_profiler.core.overlays import library, load, registry, source_is_preferred

if TYPE_CHECKING:
    from oarlock_profiler.core.interpreter.machine import Machine


_LOADED_AT_START = frozenset(
    {
        "abc",
        "builtins",
        "codecs",
        "encodings",
        "io",
        "os",
        "site",
        "stat",
        "sys",
        "time",
        "types",
        "typing",
        "zipimport",
    }
)
"""What Python has imported before a script runs (``typing`` and ``types`` by the ``.pth`` files of an installation): a
file of the same name beside the script does not hide it."""


class Importer:
    """Finds and runs modules for one machine; ``modules`` is its ``sys.modules``."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.modules: dict[str, Value] = {}
        self.base_roots: list[str] = [""]
        self.running: dict[str, None] = {}
        self._missing: set[str] = set()
        self._texts: dict[tuple[str, bool], tuple[str, bytes] | None] = {}
        self.lazy = LazyLibrary(self)
        self.framework: str | None = None
        """The framework that was imported first, where ``first_framework`` asks to be told."""
        self.first_framework: Callable[[str], None] | None = None

    @property
    def roots(self) -> list[str]:
        """Folders of the bundle that are searched: the script's, the root, and what the script put on ``sys.path``."""
        added = self.machine.state.get("sys", {}).get("path", ())
        roots = list(self.base_roots)
        for entry in added:
            if not isinstance(entry, str):
                continue
            inside = posixpath.normpath(entry.removeprefix("/bundle").lstrip("/") or ".")
            inside = "" if inside == "." else inside
            if not inside.startswith("..") and inside not in roots:
                roots.append(inside)
        return roots

    # -- finding -------------------------------------------------------------------------------------------------

    def load(self, name: str) -> Value:
        """``import name``: the module of the full dotted name (its parents are loaded first)."""
        if name in self.modules:
            return self.modules[name]
        if len(name) > 500:
            return self.machine.unknown("a module name of more than 500 characters")
        parent, _, last = name.rpartition(".")
        if parent:
            outer = self.load(parent)
            if name in self.modules:
                return self.modules[name]
            if (
                isinstance(outer, Module)
                and type(outer.attrs.get(last, MISSING)) is Module
                and not self.in_bundle(name)
            ):
                return outer.attrs[last]
        module = self._find(name)
        if parent and not isinstance(module, Unknown):
            outer = self.modules.get(parent)
            if isinstance(outer, Module) and outer.resolve is None and type(outer.attrs.get(last)) is not Lazy:
                outer.attrs[last] = module
        return module

    def _find(self, name: str) -> Value:
        path = self.in_bundle(name)
        if path is not None:
            return self._from_bundle(name, path)
        top = name.partition(".")[0]
        if name in NAMES and self.first_framework is not None and self.framework is None:
            self.framework = NAMES[name]
            self.first_framework(name)
        load(top)
        if source_is_preferred(name) and name not in self._missing and name not in library.LED_BY_OURS:
            found = self._from_library(name, written=not registry.is_package(name))
            if found is not MISSING:
                return found
        value = registry.resolve(name)
        if isinstance(value, Module):
            module = Module(name, {}, resolve=lambda attr: self._resolve(name, attr))
            module.attrs["__name__"] = name
            self.modules[name] = module
            return module
        if value is not MISSING:
            return value
        found = self._from_library(name)
        return found if found is not MISSING else self._absent(name)

    def _resolve(self, name: str, attribute: str) -> Value:
        full = f"{name}.{attribute}"
        value = registry.get(full)
        if value is not MISSING:
            return value
        if full in self.modules:
            return self.modules[full]
        if registry.is_package(full):
            return self._find(full)
        home = library.HOMES.get(full)
        if home is not None:
            written = self._own_text(home)
            return self.attribute(written, attribute) if isinstance(written, Module) else MISSING
        if library.source(full) is not None:
            return self._from_library(full)
        if name in self._missing or not source_is_preferred(full):
            return MISSING
        source = self._from_library(name, alias=f"{name} (source)")
        if isinstance(source, Module):
            return self.attribute(source, attribute)
        return self._from_library(full)

    def _absent(self, name: str) -> Value:
        m = self.machine
        top = name.partition(".")[0]
        if top in sys.stdlib_module_names:
            return Unknown(f"{name} is not modelled", m.where, "library", name=name)
        known = self.known_library(top)
        if m.caught(EXCEPTIONS["ImportError"], explicit=not known):
            m.fail("ModuleNotFoundError", f"No module named '{name}'", explicit=not known)
        if known:
            return Unknown(f"{name} is not known to the reader", m.where, "library", name=name)
        if name not in self.modules:
            m.findings.gap(f"module {name}", m.where, "not in the bundle, not on the library path, not a known library")
        module = Unknown(f"module {name} could not be found", m.where, "module", name=name)
        self.modules[name] = module
        return module

    def known_library(self, top: str) -> bool:
        """Whether the table knows the library at all."""
        return registry.is_package(top) or registry.known(top)

    def in_bundle(self, name: str) -> str | None:
        """The bundle path of a module, or None."""
        if name in _LOADED_AT_START:
            return None
        sources = self.machine.sources
        relative = name.replace(".", "/")
        for root in self.roots:
            base = f"{root}/{relative}" if root else relative
            for path in (f"{base}/__init__.py", f"{base}.py"):
                if sources.exists(path):
                    return path
        for root in self.roots:
            base = f"{root}/{relative}" if root else relative
            if any(entry.endswith(".py") for entry in sources.listdir(base)) or self._holds_package(base):
                return base
        return None

    def _holds_package(self, base: str) -> bool:
        sources = self.machine.sources
        return any(sources.exists(f"{base}/{entry}/__init__.py") for entry in list(sources.listdir(base))[:200])

    # -- running -------------------------------------------------------------------------------------------------

    def _from_bundle(self, name: str, path: str) -> Value:
        if not path.endswith(".py"):
            package = Module(name, {"__name__": name, "__path__": [path], "__package__": name}, file=path)
            self.modules[name] = package
            return package
        data = self.machine.sources.read(path)
        return self._absent(name) if data is None else self.run(name, path, data)

    def _from_library(self, name: str, alias: str | None = None, *, written: bool = True) -> Value:
        """A module from the library path, else (``written``) from our own texts; ``MISSING`` when there is neither."""
        key = alias or name
        if key in self.modules:
            return self.modules[key]
        if name in self._missing:
            return MISSING
        found = self._library(name, written)
        if found is None:
            if written:
                self._missing.add(name)
            return MISSING
        path, data = found
        return self.run(name, path, data, library=True, key=key)

    def _library(self, name: str, written: bool = True) -> tuple[str, bytes] | None:
        """A library module's source: from the library path, else (``written``) from the texts of our own."""
        key = (name, written)
        if key not in self._texts:
            found = self.machine.sources.library(name) if source_is_preferred(name) else None
            self._texts[key] = library.source(name) if found is None and written else found
        return self._texts[key]

    def is_library_package(self, name: str) -> bool:
        """Whether a library module is a package's ``__init__``."""
        found = self._library(name)
        return found is not None and found[0].endswith("__init__.py")

    def library_text(self, name: str) -> bytes | None:
        """The text of a library module."""
        found = self._library(name)
        return found[1] if found is not None else None

    def _own_text(self, name: str) -> Value:
        """One of our library texts, even where a module of that name lies on the library path."""
        found = library.source(name)
        if found is None:
            return MISSING
        # Without the library's source the same text also answers for every other name of the package.
        key = f"{name} (own)" if self.machine.sources.library(name) is not None else f"{name} (source)"
        return self.modules[key] if key in self.modules else self.run(name, *found, library=True, key=key)

    def parse(self, path: str, data: bytes) -> ast.Module | Unknown:
        """Source to tree; a fault is a placed gap and an unknown."""
        m = self.machine
        limit = m.budget.limits.source_bytes
        if len(data) > limit:
            return m.gap_at(path, 1, f"the file is larger than {limit:,} bytes")
        source = decode(data)
        if isinstance(source, str):
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    return mangle(newer_syntax.parse(source), source)
            except SyntaxError as error:
                text = f"syntax error: {error.msg}"
                if "print" in (error.text or "") or "exec" in (error.msg or ""):
                    text += " (Python 2 source? it is read as Python 3)"
                return m.gap_at(path, error.lineno or 1, text)
            except (RecursionError, MemoryError):
                return m.gap_at(path, 1, "the source is nested too deeply to parse")
            except ValueError as error:
                return m.gap_at(path, 1, f"cannot be parsed: {error}")
        return m.gap_at(path, 1, source.args[0])

    def run(
        self, name: str, path: str, data: bytes, *, library: bool = False, key: str | None = None, main: bool = False
    ) -> Value:
        """Interpret a module's source; it is in ``modules`` before its body runs, as cyclic imports need."""
        m = self.machine
        tree = self.parse(path, data)
        if isinstance(tree, Unknown):
            self.modules[key or name] = tree
            return tree
        is_package = path.endswith("__init__.py")
        package = name if is_package else name.rpartition(".")[0]
        shown = "__main__" if main else name
        attrs: dict[str, Value] = {"__name__": shown, "__file__": path, "__package__": package}
        attrs["__doc__"] = ast.get_docstring(tree)
        attrs["__spec__"] = None
        if is_package:
            attrs["__path__"] = [path.rpartition("/")[0]]
        module = Module(name, attrs, file=path, library=library)
        self.modules[key or name] = module
        if main:
            self.modules["__main__"] = module
        m.step_into(path, 1, f"module {name}")
        if is_package and b"_LazyModule" in data:
            open_type_checking(tree)
        try:
            compiler = Compiler(m, tree, library=library)
            statements = compiler.module(tree)
        except RecursionError:
            failed = m.gap_at(path, 1, "the source is nested too deeply to read")
            self.modules[key or name] = failed
            return failed
        frame = Frame(attrs, {}, module)
        if not m.enter(frame):
            return m.unknown("imports nested too deeply")
        guards = len(m.guards)
        self.running[key or name] = None
        if library:
            m.guards.append(Border(m, frame))
        try:
            for statement in statements:
                statement(frame)
        except Raised as raised:
            del m.guards[guards:]
            if main or not library or m.caught(raised.value.cls, explicit=True):
                self.modules.pop(key or name, None)
                raise
            m.findings.gap(f"module {name}", m.where, f"its source raises {m.describe(raised.value)}")
        finally:
            self.running.pop(key or name, None)
            del m.guards[guards:]
            m.frames.pop()
        if library:
            # what the table says of a library's names is worth more than their source
            attrs.update(registry.members(name))
        return self.modules[key or name]

    # -- names ---------------------------------------------------------------------------------------------------

    def top(self, name: str, module: Value) -> Value:
        """What ``import a.b.c`` binds: ``a``."""
        first = name.partition(".")[0]
        return self.modules.get(first, module) if "." in name else module

    def attribute(self, module: Module, name: str) -> Value:
        """An attribute of a module, or ``MISSING``."""
        attrs = module.attrs
        if name in attrs:
            value = attrs[name]
            return self.lazy.wake(value, attrs, name) if type(value) is Lazy else value
        if module.library:
            full = f"{module.name}.{name}"
            package = (module.file or "").endswith("__init__.py")
            if package and not self.lazy.shadows(module, full, name) and self._library(full) is not None:
                return self.load(full)
            value = self.lazy.search(module, name)
            if value is not MISSING:
                return value
        if module.resolve is not None:
            value = module.resolve(name)
            if type(value) is Property:
                # an attribute that depends on the reading, such as sys.argv
                return self.machine.call(value.getter)
            if value is not MISSING:
                if isinstance(value, Module) and value.resolve is not None:
                    attrs[name] = value
                return value
        hook = attrs.get("__getattr__")
        if hook is None and module.resolve is not None:
            found = registry.get(f"{module.name}.__getattr__")
            hook = None if found is MISSING else found
        if hook is not None and not name.startswith("__"):
            return self.machine.call(hook, [name])
        if name == "__dict__":
            return {**self.listing(module), **attrs} if module.resolve is not None else attrs
        full = f"{module.name}.{name}"
        if full in self.modules:
            return self.modules[full]
        return MISSING

    def listing(self, module: Module) -> dict[str, Value]:
        """What a module of the table holds, by name: for ``vars(nn)`` and ``dir(nn)``."""
        prefix = f"{module.name}."
        names = {n[len(prefix) :].partition(".")[0] for n in registry.names() if n.startswith(prefix)}
        found = {name: self.attribute(module, name) for name in sorted(names)}
        return {name: value for name, value in found.items() if value is not MISSING}

    def unknown_member(self, module: Module, name: str) -> Value:
        """What reading a missing attribute of a module gives: an unknown for a library, an error for the bundle."""
        m = self.machine
        full = f"{module.name}.{name}"
        if module.file is None or module.library:
            if m.caught(EXCEPTIONS["AttributeError"]):
                return m.fail("AttributeError", f"module '{module.name}' has no attribute '{name}'")
            return Unknown(f"{full} is not known to the reader", m.where, "library", name=full)
        submodule = self.in_bundle(full)
        if submodule is not None and module.file.endswith("__init__.py"):
            return self.load(full)
        return m.fail("AttributeError", f"module '{module.name}' has no attribute '{name}'")

    def absolute(self, source: str, level: int, frame: Frame) -> str:
        """The full name of a module as an import statement of ``frame`` means it."""
        if not level:
            return source
        package = frame.globals.get("__package__") or ""
        parts = str(package).split(".") if package else []
        keep = parts[: len(parts) - (level - 1)] if level > 1 else parts
        return ".".join([*keep, source] if source else keep)

    def member(self, source: str, level: int, name: str, frame: Frame) -> Value:
        """``from source import name``."""
        full = self.absolute(source, level, frame)
        if not full:
            return self.load(name)
        return self.member_of(full, name)

    def is_lazy(self, full: str, frame: Frame) -> bool:
        """Whether importing ``full`` may wait: at the top of library source, for library source not yet loaded."""
        if not frame.module.library or frame.code is not None or full in self.modules:
            return False
        if any(guard.frame is frame and guard.handlers for guard in self.machine.guards):
            return False
        top = full.partition(".")[0]
        load(top)
        return not registry.is_package(full) and not registry.known(full) and self._library(full) is not None

    def member_of(self, full: str, name: str) -> Value:
        """``from full import name``, absolute."""
        m = self.machine
        module = self.load(full)
        if isinstance(module, Unknown):
            if module.name and module.hint != "module":
                return m.part(module, attribute=name)
            return Unknown(module.why, m.where, "library" if module.hint == "library" else None, name=f"{full}.{name}")
        if not isinstance(module, Module):
            return m.getattr(module, name)
        value = self.attribute(module, name)
        if value is not MISSING:
            return value
        dotted = f"{full}.{name}"
        if self.in_bundle(dotted) is not None or (module.library and m.sources.library(dotted) is not None):
            return self.load(dotted)
        if module.resolve is not None or module.library:
            if m.caught(EXCEPTIONS["ImportError"]):
                m.fail("ImportError", f"cannot import name '{name}' from '{full}'")
            return Unknown(f"{dotted} is not known to the reader", m.where, "library", name=dotted)
        return m.fail("ImportError", f"cannot import name '{name}' from '{full}' ({module.file})")

    def star(self, source: str, level: int, frame: Frame) -> dict[str, Value]:
        """``from source import *``."""
        m = self.machine
        full = self.absolute(source, level, frame)
        if self.is_lazy(full, frame):
            self.lazy.add_star(frame.module.name, full)
            return {}
        module = self.load(full)
        if not isinstance(module, Module):
            return {}
        if full in self.lazy.stars and frame.module.library:
            self.lazy.add_star(frame.module.name, full)
        listed = module.attrs.get("__all__")
        if isinstance(listed, (list, tuple)):
            names = [n for n in listed if isinstance(n, str)]
        else:
            names = [n for n in module.attrs if not n.startswith("_")]
        if module.resolve is not None:
            prefix = f"{full}."
            names += {n[len(prefix) :].partition(".")[0] for n in registry.names() if n.startswith(prefix)}
        out: dict[str, Value] = {}
        for name in names:
            value = self.attribute(module, name)
            if value is MISSING and self.in_bundle(f"{full}.{name}"):
                value = self.load(f"{full}.{name}")
            if value is not MISSING:
                out[name] = value
        m.spend(len(out))
        return out
