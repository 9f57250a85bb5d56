"""Finds the vendor files: every module of ``oarlock_accelerators.vendors`` is one vendor, nothing is registered."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from oarlock_accelerators import vendors as vendors_package
from oarlock_accelerators.model import Kind
from oarlock_accelerators.vendor import Vendor


@cache
def vendors() -> tuple[Vendor, ...]:
    """All vendors, sorted by name.

    Raises:
        TypeError: a module of the package exposes no ``VENDOR``, or one under another name than the module's.
    """
    return tuple(_load(info.name) for info in sorted(pkgutil.iter_modules(vendors_package.__path__)))


def _load(module_name: str) -> Vendor:
    module = importlib.import_module(f"{vendors_package.__name__}.{module_name}")
    found = getattr(module, "VENDOR", None)
    if not isinstance(found, Vendor):
        raise TypeError(f"{module.__name__} must define VENDOR, an instance of oarlock_accelerators.Vendor")
    if found.name != module_name:
        raise TypeError(f"{module.__name__}: VENDOR.name is {found.name!r}, it must be {module_name!r}")
    return found


def vendor(name: str) -> Vendor:
    """The vendor of that name.

    Raises:
        KeyError: there is none; the message lists those that exist.
    """
    for candidate in vendors():
        if candidate.name == name:
            return candidate
    raise KeyError(f"no vendor {name!r}; there are {', '.join(v.name for v in vendors())}")


@cache
def all_kinds() -> tuple[Kind, ...]:
    """Every kind of every vendor, in the order of the vendors' tables."""
    return tuple(kind for each in vendors() for kind in each.kinds)
