"""Verbs of operators: reserve devices for an owner, and keep them free for maintenance."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from oarlock.cli.options import DataOption, Format, FormatOption, print_json, with_client

if TYPE_CHECKING:
    from oarlock.sdk import AsyncClient, FleetDevice
    from oarlock_schemas import Window

reserve_app = typer.Typer(help="Keep devices for one owner's tasks for some time.", no_args_is_help=True)
maintenance_app = typer.Typer(help="Keep devices free of tasks for some time.", no_args_is_help=True)

NameArgument = Annotated[str, typer.Argument(help="a name for it")]
FromOption = Annotated[str, typer.Option("--from", help="when it begins: 2026-12-01T08:00, +2h or now")]
ForOption = Annotated[str | None, typer.Option("--for", help="how long it lasts: 90m, 4h, 1d12h")]
UntilOption = Annotated[str | None, typer.Option("--until", help="when it ends, in place of --for")]
DeviceOption = Annotated[list[str] | None, typer.Option("--device", help="devices (uid)")]
NodeOption = Annotated[list[str] | None, typer.Option("--node", help="all devices of these nodes")]
SiteOption = Annotated[list[str] | None, typer.Option("--site", help="all devices of these sites")]
KindOption = Annotated[list[str] | None, typer.Option("--kind", help="devices of these kinds (of --node, --site)")]
EverythingOption = Annotated[bool, typer.Option("--everything", help="the whole fleet")]
ReasonOption = Annotated[str | None, typer.Option(help="why, for people")]


def add_to(app: typer.Typer) -> None:
    """Register the verbs."""
    app.add_typer(reserve_app, name="reserve")
    app.add_typer(maintenance_app, name="maintenance")


@reserve_app.command("add")
def reserve_add(
    name: NameArgument,
    owner: Annotated[str, typer.Option(help="whose tasks may use the devices")],
    begins: FromOption = "now",
    lasts: ForOption = None,
    until: UntilOption = None,
    device: DeviceOption = None,
    node: NodeOption = None,
    site: SiteOption = None,
    kind: KindOption = None,
    everything: EverythingOption = False,
    reason: ReasonOption = None,
    data: DataOption = None,
    format: FormatOption = Format.table,
) -> None:
    """Others' tasks are not placed where they would run into it; without a known duration they count as endless."""
    what = _what(device, node, site, kind, everything)
    _add(name, {"owner": owner, **_when(begins, lasts, until), **what, "reason": reason}, data, format)


@maintenance_app.command("add")
def maintenance_add(
    name: NameArgument,
    begins: FromOption = "now",
    lasts: ForOption = None,
    until: UntilOption = None,
    device: DeviceOption = None,
    node: NodeOption = None,
    site: SiteOption = None,
    kind: KindOption = None,
    everything: EverythingOption = False,
    reason: ReasonOption = None,
    data: DataOption = None,
    format: FormatOption = Format.table,
) -> None:
    """No task is placed where it would run into it; without a known duration it counts as endless. Runs go on."""
    what = _what(device, node, site, kind, everything)
    _add(name, {**_when(begins, lasts, until), **what, "reason": reason}, data, format)


@reserve_app.command("list")
def reserve_list(data: DataOption = None, format: FormatOption = Format.table) -> None:
    """The reservations that there are."""
    _list(lambda window: window.owner is not None, data, format)


@maintenance_app.command("list")
def maintenance_list(data: DataOption = None, format: FormatOption = Format.table) -> None:
    """The maintenance that is planned."""
    _list(lambda window: window.owner is None, data, format)


@reserve_app.command("remove")
def reserve_remove(name: NameArgument, data: DataOption = None, format: FormatOption = Format.table) -> None:
    """Take a reservation back; its devices are open to all at once."""
    _remove(name, data, format)


@maintenance_app.command("remove")
def maintenance_remove(name: NameArgument, data: DataOption = None, format: FormatOption = Format.table) -> None:
    """Take a maintenance window back; its devices take tasks at once."""
    _remove(name, data, format)


def _when(begins: str, lasts: str | None, until: str | None) -> dict[str, str]:
    from oarlock.times import duration_of, time_of

    if (lasts is None) == (until is None):
        raise typer.BadParameter("say how long it lasts (--for) or when it ends (--until)")
    now = datetime.now().astimezone()
    try:
        begin = time_of(begins, now)
        end = begin + duration_of(lasts) if lasts is not None else time_of(until or "", now)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    return {"begins_at": begin.isoformat(timespec="seconds"), "ends_at": end.isoformat(timespec="seconds")}


def _what(
    devices: list[str] | None, nodes: list[str] | None, sites: list[str] | None, kinds: list[str] | None, all_: bool
) -> dict[str, Any]:
    named = {"devices": devices, "nodes": nodes, "sites": sites, "kinds": kinds}
    return {**{key: value for key, value in named.items() if value}, "everything": all_}


def _add(name: str, document: dict[str, Any], data: Any, format: Format) -> None:
    from oarlock_schemas import Window, read

    window, _ = read(Window, document)

    async def work(client: AsyncClient) -> list[FleetDevice]:
        await client.add_window(name, window)
        return [device for device in await client.fleet() if covers(window, device)]

    covered = with_client(work, data)
    tasks = sorted({lease.task_id for device in covered for lease in device.leases.leases})
    if format is Format.json:
        print_json({"name": name, "window": window, "devices": [d.state.uid for d in covered], "running": tasks})
        return
    print(f"{name}: {window.begins_at} to {window.ends_at}, {len(covered)} of the devices that report now")
    if tasks:
        print(f"running there now, and left alone: {', '.join(tasks)}")


def covers(window: Window, device: FleetDevice) -> bool:
    """Whether the window holds the device."""
    from oarlock_accelerators import find_kind, means

    state = device.state
    if state.uid in window.devices:
        return True
    kind = find_kind(state.kind, vendor=state.vendor)
    of_kind = state.kind in window.kinds or (kind is not None and any(means(name, kind) for name in window.kinds))
    narrowed = window.sites or window.nodes or window.kinds
    return bool(window.everything or narrowed) and (
        (not window.sites or state.site in window.sites)
        and (not window.nodes or state.node in window.nodes)
        and (not window.kinds or of_kind)
    )


def _list(wanted: Callable[[Window], bool], data: Any, format: Format) -> None:
    windows = {name: w for name, w in with_client(lambda client: client.windows(), data).items() if wanted(w)}
    if format is Format.json:
        print_json(windows)
        return
    from oarlock.render import console
    from oarlock.render import windows as table

    console().print(table(windows))


def _remove(name: str, data: Any, format: Format) -> None:
    with_client(lambda client: client.remove_window(name), data)
    print_json({"removed": name}) if format is Format.json else print(f"{name} removed")
