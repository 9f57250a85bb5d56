"""Versions of installed packages, and whether a package is there.

Where the script will run is not known, so what a version check is given is an assumption, noted as one: a recent
release of each framework.
"""

# ruff: noqa: E501 - tables

from __future__ import annotations

import posixpath
import re
import sys
from typing import Any

from oarlock_profiler.core.interpreter.errors import EXCEPTIONS
from oarlock_profiler.core.interpreter.values import MISSING, Context, HostObject, Native, Unknown, Value
from oarlock_profiler.core.overlays import load, registry
from oarlock_profiler.core.overlays.registry import entry, register
from oarlock_profiler.core.overlays.stdlib_files import bundle_path

LIBRARIES = (
    "importlib",
    "packaging",
    "pkg_resources",
    "distutils",
    "pkgutil",
    "importlib_metadata",
    "looseversion",
    "pydoc",
)
_ASSUMED = {
    "torch": "2.7.1", "torchvision": "0.22.1", "torchaudio": "2.7.1", "paddlepaddle": "3.1.0",
    "paddlepaddle-gpu": "3.1.0",
    "paddle": "3.1.0", "numpy": "2.2.6", "transformers": "4.53.0", "accelerate": "1.8.0", "timm": "1.0.16",
    "peft": "0.16.0",
    "datasets": "3.6.0", "lightning": "2.5.2", "pytorch-lightning": "2.5.2", "deepspeed": "0.17.1",
    "paddlenlp": "3.0.0",
    "scipy": "1.15.3", "pillow": "11.2.1", "opencv-python": "4.11.0", "omegaconf": "2.3.0", "hydra-core": "1.3.2",
    "setuptools": "75.0.0", "packaging": "25.0", "tokenizers": "0.21.2", "safetensors": "0.5.3",
    "huggingface_hub": "0.33.0",
    "huggingface-hub": "0.33.0", "regex": "2024.11.6", "tqdm": "4.67.1", "pyyaml": "6.0.2", "requests": "2.32.4",
    "filelock": "3.18.0",
}  # fmt: skip
_NUMBER = re.compile(r"\d{1,9}")


def numbers(text: str) -> tuple[int, ...]:
    """The release numbers of a version: ``2.7.1+cu126`` → (2, 7, 1)."""
    head = re.split(r"[+\-]|(?:a|b|rc|dev|post)\d*", text[:100].lower().lstrip("v"), maxsplit=1)[0]
    found = [int(n) for n in _NUMBER.findall(head)]
    while found and found[-1] == 0:
        found.pop()
    return tuple(found)


class Version(HostObject):
    """A version that can be compared."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.release = numbers(text)

    def py_type(self) -> str:
        return "packaging.version.Version"

    def py_binary(self, context: Context, op: str, other: Value, reflected: bool) -> Value:
        if isinstance(other, str):
            other = Version(other)
        if not isinstance(other, Version):
            return MISSING
        a, b = (other.release, self.release) if reflected else (self.release, other.release)
        return {"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b, "==": a == b, "!=": a != b}.get(op, MISSING)

    def py_getattr(self, context: Context, name: str) -> Value:
        padded = (*self.release, 0, 0, 0)
        found: dict[str, Value] = {
            "release": padded[:3], "major": padded[0], "minor": padded[1], "micro": padded[2], "version": self.text,
            "base_version": self.text.partition("+")[0], "public": self.text.partition("+")[0], "is_prerelease": False,
            "is_devrelease": False, "dev": None, "pre": None, "post": None, "local": None,
        }  # fmt: skip
        if name in ("__str__", "__repr__"):
            return Native("Version.__str__", lambda _m: self.text)
        return found.get(name, MISSING)


@entry("packaging.version.parse", "packaging.version.Version", "pkg_resources.parse_version", "distutils.version.LooseVersion",
       "distutils.version.StrictVersion", "packaging.version.LegacyVersion", "looseversion.LooseVersion")  # fmt: skip
def parse(m: Any, text: Value = "") -> Value:
    if isinstance(text, Version):
        return text
    return Version(text) if isinstance(text, str) else Unknown("a version that is not known", m.where, "version")


register("packaging.version.InvalidVersion", EXCEPTIONS["ValueError"])


def available(m: Any, name: str) -> bool:
    """Whether a package can be imported: from the bundle, the table, the library path or the standard library."""
    top = name.partition(".")[0]
    load(top)
    return bool(
        registry.is_package(name)
        or registry.known(name)
        or top in sys.stdlib_module_names
        or m.importer.in_bundle(name) is not None
        or m.importer.library_text(name) is not None
        or top in m.importer.modules
    )


def assumed_version(m: Any, name: Value) -> Value:
    """What ``importlib.metadata.version(name)`` gives."""
    if not isinstance(name, str):
        return m.derived("the version of a package", "str")
    found = _ASSUMED.get(name.lower()) or _ASSUMED.get(name.lower().replace("_", "-"))
    if found is None and not available(m, name.replace("-", "_")):
        if m.caught(EXCEPTIONS["ImportError"]):
            return m.fail("ModuleNotFoundError", f"no package named {name}")
        return m.derived(f"the version of {name}", "str")
    m.findings.gap(f"version of {name}", m.where, "it is decided where the script runs", found or "1.0.0")
    return found or "1.0.0"


for _module in ("importlib.metadata", "importlib_metadata"):
    register(f"{_module}.version", Native(f"{_module}.version", assumed_version))
    register(f"{_module}.PackageNotFoundError", EXCEPTIONS["ModuleNotFoundError"])
    register(f"{_module}.packages_distributions", Native(f"{_module}.packages_distributions", lambda _m: {}))


class Distribution(HostObject):
    """``pkg_resources.get_distribution(name)``."""

    def __init__(self, version: Value) -> None:
        self.version = version

    def py_getattr(self, context: Context, name: str) -> Value:
        return self.version if name == "version" else MISSING


register(
    "pkg_resources.get_distribution", Native("get_distribution", lambda m, name: Distribution(assumed_version(m, name)))
)


class Spec(HostObject):
    """A module spec: that a module can be found."""

    def __init__(self, name: str, path: str | None = None) -> None:
        self.name = name
        self.path = path

    def py_getattr(self, context: Context, name: str) -> Value:
        if name == "loader":
            return self
        if name == "exec_module":
            return Native("exec_module", lambda _m, _module: None)
        return {"name": self.name, "origin": self.path, "submodule_search_locations": []}.get(name, MISSING)


@entry("importlib.util.find_spec", "pkgutil.find_loader", "importlib.find_loader")
def find_spec(m: Any, name: Value, package: Value = None) -> Value:
    if not isinstance(name, str):
        return m.derived("a module spec")
    return Spec(name) if available(m, name) else None


@entry("importlib.util.spec_from_file_location")
def spec_from_file(m: Any, name: Value, path: Value = None, **_kw: Value) -> Value:
    return Spec(name if isinstance(name, str) else "module", path if isinstance(path, str) else None)


@entry("importlib.util.module_from_spec")
def module_from_spec(m: Any, spec: Value) -> Value:
    from oarlock_profiler.core.overlays.stdlib_files import locate  # noqa: PLC0415

    if isinstance(spec, Spec):
        path = locate(m, spec.path)
        data = m.sources.read(path) if path is not None else None
        if path is not None and data is not None:
            return m.importer.run(spec.name, path, data)
    return m.unknown("a module from a file that is not in the bundle")


@entry("pkgutil.get_data")
def get_data(m: Any, package: Value, resource: Value) -> Value:
    """A file beside a module: of the bundle, or of a package on the library path."""
    if not isinstance(package, str) or not isinstance(resource, str):
        return m.derived("a file of a package", "bytes")
    folder = package.replace(".", "/")
    for path in (f"{folder}/{resource}", f"{posixpath.dirname(folder)}/{resource}".lstrip("/")):
        data = m.sources.read(path)
        if data is not None:
            return data
    for name in (package, package.rpartition(".")[0]):
        data = m.sources.library_file(name, resource) if name else None
        if data is not None:
            return data
    return m.unknown(f"the file {resource[:100]} of {package[:100]} is not at hand", hint="bytes")


@entry("pkgutil.iter_modules", "pkgutil.walk_packages")
def iter_modules(context: Any, path: Value = None, prefix: Value = "", *_more: Value) -> Value:
    """The modules in folders of the bundle: (finder, name, whether it is a package)."""
    start = prefix if isinstance(prefix, str) else ""
    found: list[Value] = []
    for folder in path if isinstance(path, (list, tuple)) else []:
        inside = bundle_path(context, folder)
        for name in context.sources.listdir(inside) if inside is not None else ():
            if context.sources.exists(f"{inside}/{name}/__init__.py"):
                found.append((None, start + name, True))
            elif name.endswith(".py") and name != "__init__.py":
                found.append((None, start + name.removesuffix(".py"), False))
    return found


@entry("pydoc.locate")
def located(context: Any, path: Value, *_force: Value) -> Value:
    """``pydoc.locate("package.module.Class")``: the object of that dotted path."""
    if not isinstance(path, str):
        return Unknown("an object whose path is not known", context.where)
    parts = path.split(".")
    for cut in range(len(parts) - 1, 0, -1):
        found = context.importer.load(".".join(parts[:cut]))
        for name in parts[cut:]:
            found = MISSING if found is MISSING else context.find(found, name)
        if found is not MISSING and not isinstance(found, Unknown):
            return found
    return context.unknown(f"{path} could not be found", name=path)
