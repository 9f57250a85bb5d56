"""Verbs that try placement out: simulate."""

from __future__ import annotations

import typer

_PASSED_ON = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}


def add_to(app: typer.Typer) -> None:
    """Register the verbs."""
    app.command(context_settings=_PASSED_ON)(simulate)


def simulate(context: typer.Context) -> None:
    """Try placement policies on a fleet and a workload: --nodes FILE --tasks FILE [--policy NAME…] [--help]."""
    from oarlock.planning import simulate as run

    raise typer.Exit(run(context.args))
