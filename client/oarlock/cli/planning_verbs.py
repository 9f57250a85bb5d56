"""Verbs that try placement out, or again: simulate and replay."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from oarlock.cli.options import Format, FormatOption, print_json

_PASSED_ON = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}


def add_to(app: typer.Typer) -> None:
    """Register the verbs."""
    app.command(context_settings=_PASSED_ON)(simulate)
    app.command()(replay)


def simulate(context: typer.Context) -> None:
    """Try placement policies on a fleet and a workload: --nodes FILE --tasks FILE [--policy NAME…] [--help]."""
    from oarlock.planning import simulate as run

    raise typer.Exit(run(context.args))


def replay(
    file: Annotated[Path, typer.Argument(help="a matcher's decision log (OARLOCK_RECORD_DECISIONS)")],
    format: FormatOption = Format.table,
) -> None:
    """Decide again what a matcher decided, bit for bit. Exit 1 when anything comes out otherwise."""
    from oarlock.planning import NoDecisionLog
    from oarlock.planning import replay as run

    try:
        reigns = run(file)
    except NoDecisionLog as error:
        raise typer.BadParameter(str(error), param_hint="FILE") from None
    wrong = sum(len(reign["mismatches"]) for reign in reigns)
    if format is Format.json:
        print_json(reigns)
    else:
        print(f"{sum(reign['decisions'] for reign in reigns)} decisions of {len(reigns)} reigns, {wrong} otherwise")
        for reign in reigns:
            for mismatch in reign["mismatches"][:20]:
                print(f"  reign {reign['reign']}, decision {mismatch['number']}: {mismatch['event']}")
    raise typer.Exit(1 if wrong else 0)
