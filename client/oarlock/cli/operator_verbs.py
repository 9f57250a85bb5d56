"""Verbs of operators: cordon, uncordon and policy."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from oarlock.cli.options import DataOption, Format, FormatOption, print_json, with_client

if TYPE_CHECKING:
    from oarlock.sdk import AsyncClient

NamesArgument = Annotated[list[str], typer.Argument(help="devices (uid) or nodes, as `oarlock fleet` shows them")]
policy_app = typer.Typer(help="How the matcher weighs and queues; changes apply at once.", no_args_is_help=True)


def add_to(app: typer.Typer) -> None:
    """Register the verbs."""
    app.command()(cordon)
    app.command()(uncordon)
    app.add_typer(policy_app, name="policy")


def cordon(names: NamesArgument, data: DataOption = None, format: FormatOption = Format.table) -> None:
    """Keep new tasks off devices, or off all devices of a node (drain it). What runs there goes on."""
    _mark(names, True, data, format)


def uncordon(names: NamesArgument, data: DataOption = None, format: FormatOption = Format.table) -> None:
    """Let new tasks on again."""
    _mark(names, False, data, format)


def _mark(names: list[str], cordoned: bool, data: Any, format: Format) -> None:
    async def work(client: AsyncClient) -> list[str]:
        return [uid for name in names for uid in await client.cordon(name, cordoned=cordoned)]

    changed = with_client(work, data)
    if format is Format.json:
        print_json({"cordoned": cordoned, "devices": changed})
    else:
        print("\n".join(f"{uid} {'cordoned' if cordoned else 'takes tasks'}" for uid in changed))


@policy_app.command("show")
def policy_show(data: DataOption = None) -> None:
    """What operators have changed (an empty object: everything is at its default)."""
    print_json(with_client(lambda client: client.policy(), data))


@policy_app.command("standing")
def policy_standing(data: DataOption = None) -> None:
    """Whether the learned policy is trusted, its regret beside the rules', and the owners' fair share (null: nothing
    of these is in use yet)."""
    print_json(with_client(lambda client: client.policy_standing(), data))


@policy_app.command("set")
def policy_set(
    changes: Annotated[
        list[str], typer.Argument(help="NAME=VALUE, e.g. preset=cost preemption=true weights.speed=1.5")
    ],
    data: DataOption = None,
) -> None:
    """Change fields; VALUE is JSON, or text. `NAME=null` puts a field back to its default."""

    async def work(client: AsyncClient) -> dict[str, Any]:
        document = await client.policy()
        return await client.policy(_merged(document, changes))

    print_json(with_client(work, data))


def _merged(document: dict[str, Any], changes: list[str]) -> dict[str, Any]:
    for change in changes:
        name, equals, text = change.partition("=")
        if not equals or not name:
            raise typer.BadParameter(f"{change!r} is not NAME=VALUE")
        try:
            value = json.loads(text)
        except ValueError:
            value = text
        at = document
        *above, last = name.split(".")
        for part in above:
            inner = dict(found) if isinstance(found := at.get(part), dict) else {}
            at[part] = inner
            at = inner
        at[last] = value
    return document
