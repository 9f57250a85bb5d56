"""What the estimator has learned: show it, take it out, forget it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from oarlock.cli.options import DataOption, Format, FormatOption, print_json, with_client

if TYPE_CHECKING:
    from oarlock.sdk import AsyncClient

calibration_app = typer.Typer(help="What the estimator has learned from completed runs.", no_args_is_help=True)
KEY = "factors"


def add_to(app: typer.Typer) -> None:
    """Register the verbs."""
    app.add_typer(calibration_app, name="calibration")


async def _state(client: AsyncClient) -> dict[str, Any]:
    entry = await client.bus.bucket("calibration").get(KEY)
    return entry.value if entry is not None else {}


@calibration_app.command()
def show(data: DataOption = None, format: FormatOption = Format.table) -> None:
    """Each cell: its correction factor, and the runs behind it."""
    from oarlock.local import learned_cells
    from oarlock.render import cells, console

    found = learned_cells(with_client(_state, data))
    print_json(found) if format is Format.json else console().print(cells(found))


@calibration_app.command()
def export(data: DataOption = None) -> None:
    """The whole state as JSON."""
    print_json(with_client(_state, data))


@calibration_app.command()
def reset(
    cell: Annotated[str | None, typer.Argument(help="only cells below this one, e.g. pytorch/cnn")] = None,
    data: DataOption = None,
) -> None:
    """Forget what was learned; all of it, or the cells below one."""
    from oarlock.local import forget_cells

    async def work(client: AsyncClient) -> None:
        await client.bus.bucket("calibration").change(KEY, lambda state: forget_cells(state, cell))

    with_client(work, data)
