"""Verbs that speak with a running Oarlock: submit, ps, show, logs, cancel, fleet, history, dead."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from oarlock.cli.options import DataOption, Format, FormatOption, print_json, print_json_line, with_client

if TYPE_CHECKING:
    from oarlock.sdk import AsyncClient

TaskArgument = Annotated[str, typer.Argument(help="the task's id")]
dead_app = typer.Typer(help="Messages that could not be handled.", no_args_is_help=True)


def add_to(app: typer.Typer) -> None:
    """Register the verbs."""
    app.command()(submit)
    app.command()(ps)
    app.command()(show)
    app.command()(logs)
    app.command()(cancel)
    app.command()(why)
    app.command()(fleet)
    app.command()(history)
    app.add_typer(dead_app, name="dead")


def submit(
    path: Annotated[Path, typer.Argument(help="a script, a folder, a notebook, an archive, or a task file (YAML)")],
    arguments: Annotated[list[str] | None, typer.Argument(help="after --: the script's own arguments")] = None,
    name: Annotated[str | None, typer.Option(help="a name for people")] = None,
    entry: Annotated[str | None, typer.Option(help="the script to run inside a folder or archive")] = None,
    framework: Annotated[
        str | None, typer.Option(help="paddlepaddle or pytorch, where the script does not show it")
    ] = None,
    batch_size: Annotated[int | None, typer.Option(help="batch per device, where the script is silent")] = None,
    gpus: Annotated[str | None, typer.Option(help="number of devices, or auto")] = None,
    prefer: Annotated[list[str] | None, typer.Option(help="preferred device kinds")] = None,
    require: Annotated[list[str] | None, typer.Option(help="only these device kinds")] = None,
    forbid: Annotated[list[str] | None, typer.Option(help="never these device kinds")] = None,
    exclusive: Annotated[bool, typer.Option("--exclusive", help="share no device")] = False,
    shared: Annotated[bool, typer.Option("--shared", help="others that allow it too may use its device")] = False,
    several_nodes: Annotated[
        bool, typer.Option("--several-nodes", help="its devices may be of several nodes of one site")
    ] = False,
    priority: Annotated[int | None, typer.Option(min=0, max=100, help="higher runs earlier [default: 50]")] = None,
    owner: Annotated[str | None, typer.Option(help="who is charged")] = None,
    retries: Annotated[int | None, typer.Option(min=0, max=10, help="runs to start again after a failure")] = None,
    timeout: Annotated[float | None, typer.Option(help="longest wait for a device, in seconds")] = None,
    run_timeout: Annotated[float | None, typer.Option(help="longest run, in seconds")] = None,
    image: Annotated[str | None, typer.Option(help="container image")] = None,
    after: Annotated[list[str] | None, typer.Option(help="tasks that must succeed first")] = None,
    array: Annotated[
        str | None,
        typer.Option(help="many tasks: 0-9, 1,3,5-7, 0-15:4, then %2 for two at a time; OARLOCK_ARRAY_INDEX"),
    ] = None,
    env: Annotated[list[str] | None, typer.Option(help="NAME=VALUE for the script")] = None,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="follow it to its end")] = False,
    data: DataOption = None,
    format: FormatOption = Format.table,
) -> None:
    """Submit a script or a task file. Prints the task's id; with --watch follows it and exits 1 if it fails."""
    from oarlock.bundle import load

    if gpus is not None and gpus != "auto" and not gpus.isdecimal():
        raise typer.BadParameter("must be a number or auto", param_hint="--gpus")
    environment = {}
    for pair in env or []:
        key, found, value = pair.partition("=")
        if not found or not key:
            raise typer.BadParameter(f"{pair!r} is not NAME=VALUE", param_hint="--env")
        environment[key] = value
    packed = load(
        path,
        {
            "name": name,
            "arguments": arguments or None,
            "environment": environment,
            "source": {"entry": entry},
            "task": {
                "framework": framework,
                "batch_size_per_gpu": batch_size,
                "num_gpus_estimate": int(gpus) if gpus and gpus != "auto" else gpus,
            },
            "resource_policy": {
                "preferred_devices": prefer or None,
                "required_devices": require or None,
                "forbidden_devices": forbid or None,
                "exclusive": exclusive or None,
                "shared": shared or None,
                "several_nodes": several_nodes or None,
            },
            "scheduler": {"timeout_seconds": timeout, "run_timeout_seconds": run_timeout},
            "priority": priority,
            "owner": owner,
            "retries": retries,
            "image": image,
            "after": after or None,
            "array": array,
        },
    )

    async def work(client: AsyncClient) -> int:
        from oarlock.cli.watching import follow
        from oarlock.terminal import plain

        for field in packed.ignored:
            print(f"{plain(field)} is no field of a task and was ignored", file=sys.stderr)
        task_id = await client.submit(packed)
        if not watch:
            print_json({"task_id": task_id, "ignored": list(packed.ignored)}) if format is Format.json else print(
                task_id
            )
            return 0
        return await follow(client, task_id, as_json=format is Format.json)

    raise typer.Exit(with_client(work, data))


def ps(
    all: Annotated[bool, typer.Option("--all", "-a", help="ended tasks too")] = False,
    data: DataOption = None,
    format: FormatOption = Format.table,
) -> None:
    """List tasks that have not ended (all with --all). Waiting tasks of an array are counted in its own line."""
    from oarlock.arrays import waits_in_array, with_counts
    from oarlock.render import console, tasks

    records = with_client(lambda client: client.tasks(), data)
    shown = [record for record in records if all or not (record.final or waits_in_array(record))]
    if format is Format.json:
        print_json(shown)
        return
    console().print(tasks([with_counts(record, records) for record in shown]))


def show(task: TaskArgument, data: DataOption = None, format: FormatOption = Format.table) -> None:
    """Everything known of one task: portrait, decision, run, measured against predicted."""

    async def work(client: AsyncClient) -> dict[str, Any]:
        record = await client.task(task)
        events = [event async for event in client.events(task, follow=False)]
        run = await client.run_record(task, timeout_seconds=0.5)
        return {"task": record, "events": [{"event": e.name, **e.body} for e in events], "run": run}

    found = with_client(work, data)
    if format is Format.json:
        print_json(found)
        return
    from oarlock.cli.watching import Screen
    from oarlock.render import console, runs, tasks

    screen = console()
    screen.print(tasks([found["task"]]))
    view = Screen(screen)
    for event in found["events"]:
        view.event(event["event"], {k: v for k, v in event.items() if k != "event"})
    if found["run"]:
        screen.print(runs([found["run"]]))


def logs(
    task: TaskArgument,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="go on until the task ends")] = False,
    data: DataOption = None,
    format: Annotated[Format, typer.Option("--format")] = Format.table,
) -> None:
    """The task's output."""
    from oarlock.terminal import plain

    async def work(client: AsyncClient) -> None:
        await client.task(task)
        async for line in client.logs(task, follow=follow):
            if format is Format.json:
                print_json_line(line)
            else:
                print(plain(line.line), flush=True)

    with_client(work, data)


def cancel(
    task: TaskArgument,
    reason: Annotated[str | None, typer.Option(help="why, for the record")] = None,
    data: DataOption = None,
    format: FormatOption = Format.table,
) -> None:
    """Stop a task, wherever it is; the id of an array stops all of its tasks."""
    with_client(lambda client: client.cancel(task, reason=reason), data)
    if format is Format.json:
        print_json({"task_id": task, "cancel": "asked"})


def why(task: TaskArgument, data: DataOption = None, format: FormatOption = Format.table) -> None:
    """Why a task stands where it stands, and what would free it."""

    async def work(client: AsyncClient) -> dict[str, Any]:
        record = await client.task(task)
        subjects = client.bus.subjects
        by_state = {"queued": subjects.queued, "rejected": subjects.rejected}
        subject = by_state[record.state](task) if record.state in by_state else None
        message = await client.bus.last(subject) if subject else None
        members = await client.tasks_of(record)
        return {"task": record, "why": message.json() if message else None, "tasks": members}

    found = with_client(work, data)
    if format is Format.json:
        print_json(found)
        return
    from oarlock.cli.watching import Screen
    from oarlock.render import console, tasks

    screen = console()
    screen.print(tasks([found["task"]]))
    for step in found["task"].history:
        screen.print(f"  {step.at}  {step.state:<10} {step.by}: {step.note or ''}")
    if found["tasks"]:
        screen.print(tasks(found["tasks"]))
    if found["why"]:
        Screen(screen).event(found["task"].state, found["why"])


def fleet(data: DataOption = None, format: FormatOption = Format.table) -> None:
    """Every device, what is used and booked on it, and by whom."""
    from oarlock.render import console
    from oarlock.render import fleet as table

    devices = with_client(lambda client: client.fleet(), data)
    if format is Format.json:
        print_json([{**d.state.model_dump(mode="json"), "leases": d.leases.leases} for d in devices])
    else:
        console().print(table(devices))


def history(
    limit: Annotated[int, typer.Option(min=1, help="how many of the last runs")] = 20,
    data: DataOption = None,
    format: FormatOption = Format.table,
) -> None:
    """Past runs, predicted and measured side by side."""
    from oarlock.render import console, runs

    records = with_client(lambda client: client.history(limit=limit), data)
    print_json(records) if format is Format.json else console().print(runs(records))


@dead_app.command("list")
def dead_list(
    service: Annotated[str | None, typer.Option(help="only this service's")] = None,
    data: DataOption = None,
    format: FormatOption = Format.table,
) -> None:
    """List them, oldest first."""
    from oarlock.cli.dead_view import as_dict, table
    from oarlock.render import console
    from oarlock_runtime import DeadLetters

    letters = with_client(lambda client: DeadLetters(client.bus).list(service), data)
    print_json([as_dict(letter) for letter in letters]) if format is Format.json else console().print(table(letters))


@dead_app.command("show")
def dead_show(
    number: Annotated[int, typer.Argument(help="from `dead list`")],
    data: DataOption = None,
    format: FormatOption = Format.json,
) -> None:
    """Show one whole, as JSON (whatever --format says: a message has no other form)."""
    del format
    from oarlock.cli.dead_view import as_dict
    from oarlock_runtime import DeadLetters

    print_json(as_dict(with_client(lambda client: DeadLetters(client.bus).show(number), data), whole=True))


@dead_app.command("retry")
def dead_retry(
    numbers: Annotated[list[int], typer.Argument(help="from `dead list`")],
    data: DataOption = None,
    format: FormatOption = Format.table,
) -> None:
    """Publish them again where they came from."""

    async def work(client: AsyncClient) -> None:
        from oarlock_runtime import DeadLetters

        for number in numbers:
            sequence = await DeadLetters(client.bus).retry(number)
            if format is Format.json:
                print_json_line({"number": number, "published_as": sequence})
            else:
                print(f"{number} published again as {sequence}")

    with_client(work, data)
