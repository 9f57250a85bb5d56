"""The ``oarlock`` command. One file per group of verbs; heavy imports stay inside the verb that needs them."""

from __future__ import annotations

from oarlock.cli.starting import uncollected

__all__ = ["main"]


def main() -> None:
    """Run the command."""
    with uncollected():
        from oarlock.cli import app
    app.main()
