"""Verbs about this machine: ``up`` and ``doctor``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from oarlock.cli.options import DataOption, Format, FormatOption, print_json


def add_to(app: typer.Typer) -> None:
    """Register the verbs."""
    app.command()(up)
    app.command()(doctor)
    app.command()(version)


def up(
    nats_port: Annotated[int, typer.Option(help="port of the embedded NATS server; 0 takes a free one")] = 0,
    http_port: Annotated[int, typer.Option(help="port of the web page and HTTP API; 0 takes a free one")] = 8750,
    fleet: Annotated[Path | None, typer.Option(help="fleet file with simulated devices, beside this machine's")] = None,
    data: DataOption = None,
) -> None:
    """Start NATS and every service on this machine, and keep them running until Ctrl-C."""
    import asyncio

    from oarlock.connection import data_folder
    from oarlock.render import console
    from oarlock.up import Up

    screen = console()
    if fleet is not None and not fleet.is_file():
        raise typer.BadParameter(f"{fleet} does not exist", param_hint="--fleet")
    whole = Up(data or data_folder(), nats_port, http_port, fleet, tell=screen.print)
    whole.start()
    try:
        connection = whole.connection
        screen.print("Oarlock is up; Ctrl-C stops it.", style="bold")
        screen.print(f"  web page   {connection.gateway_url}/?token={connection.gateway_token}")
        screen.print(f"  bus        {connection.url} (token in {whole.data / 'up.json'})")
        screen.print(f"  data       {whole.data}")
        screen.print("  try        oarlock submit examples/numpy_mlp.py --watch")
        asyncio.run(whole.watch())
    finally:
        whole.stop()


def doctor(format: FormatOption = Format.table) -> None:
    """Say what this machine has, what is missing, and how to get it. Exit 1 when the basics are missing."""
    from oarlock.doctor import examine
    from oarlock.render import checks, console

    found = examine()
    if format is Format.json:
        print_json([check.as_dict() for check in found])
    else:
        console().print(checks(found))
    raise typer.Exit(1 if any(check.required and not check.ok for check in found) else 0)


def version() -> None:
    """Print the version."""
    from importlib.metadata import version as installed

    print(installed("oarlock"))
