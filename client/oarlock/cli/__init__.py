"""The ``oarlock`` command. One file per group of verbs; heavy imports stay inside the verb that needs them."""

from __future__ import annotations

from oarlock.cli.app import main

__all__ = ["main"]
