"""Verbs that read a script on this machine, without a bus: explain and fit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from oarlock.cli.options import Format, FormatOption, print_json
from oarlock.cli.starting import uncollected


def add_to(app: typer.Typer) -> None:
    """Register the verbs."""
    app.command()(explain)
    app.command()(fit)


ScriptArgument = Annotated[
    Path, typer.Argument(help="a script, a folder, a notebook, an archive, or a task file (YAML)")
]
ArgumentsArgument = Annotated[list[str] | None, typer.Argument(help="after --: the script's own arguments")]


def explain(
    script: ScriptArgument,
    arguments: ArgumentsArgument = None,
    gpu: Annotated[str | None, typer.Option(help="also say whether it fits this device, and what would help")] = None,
    entry: Annotated[str | None, typer.Option(help="the script to read inside a folder or archive")] = None,
    library_path: Annotated[
        list[Path] | None, typer.Option(help="folders with library sources to read as text")
    ] = None,
    env: Annotated[list[str] | None, typer.Option(help="NAME=VALUE for the script")] = None,
    world_size: Annotated[int, typer.Option(min=1, help="processes that train together")] = 1,
    trace: Annotated[bool, typer.Option("--trace", help="also show the path the reader took, step by step")] = False,
    format: FormatOption = Format.table,
) -> None:
    """Read a script without running it: its model, memory and time, with evidence. Exit 1 when --gpu is too small."""
    with uncollected():
        from oarlock.local import UnknownDevice, explain_path

        try:
            reading = explain_path(
                script,
                arguments or [],
                gpu=gpu,
                entry=entry,
                library_paths=library_path or [],
                environment=dict(pair.split("=", 1) for pair in env or [] if "=" in pair),
                world_size=world_size,
                trace=trace,
            )
        except UnknownDevice as error:
            raise typer.BadParameter(str(error), param_hint="--gpu") from None
        if format is Format.json:
            print_json({"portrait": reading.portrait, "trace": reading.steps} if trace else reading.portrait)
        else:
            from oarlock.render import console, portrait

            screen = console()
            for step in reading.path:
                screen.print(step, style="dim", markup=False, highlight=False, no_wrap=True, overflow="ellipsis")
            screen.print(portrait(reading.portrait, model_depth=6))
    fit = reading.portrait.fit
    raise typer.Exit(1 if fit is not None and fit.verdict == "oom" else 0)


def fit(
    script: ScriptArgument,
    arguments: ArgumentsArgument = None,
    gpu: Annotated[str, typer.Option(help="the device that it should fit")] = ...,  # type: ignore[assignment]
    entry: Annotated[str | None, typer.Option(help="the script to read inside a folder or archive")] = None,
    library_path: Annotated[
        list[Path] | None, typer.Option(help="folders with library sources to read as text")
    ] = None,
    format: FormatOption = Format.table,
) -> None:
    """The largest batch that a device holds, and what else would make the script fit. Exit 1 when it does not fit."""
    from oarlock.local import UnknownDevice, explain_path

    try:
        found = explain_path(script, arguments or [], gpu=gpu, entry=entry, library_paths=library_path or []).portrait
    except UnknownDevice as error:
        raise typer.BadParameter(str(error), param_hint="--gpu") from None
    now = found.batch.size_per_device
    verdict = found.fit.verdict if found.fit else "unknown"
    changes = {item.change: item for item in found.advice}
    fits = verdict in {"fits", "tight"}
    largest = changes["batch_size"].value if "batch_size" in changes else now if fits else None
    if format is Format.json:
        body = {"batch_size": now, "largest_batch_size": largest, "fit": found.fit, "advice": found.advice}
        print_json({"device": found.fit.device if found.fit else gpu, **body})
    else:
        from oarlock.render import advice, console, size

        screen = console()
        peak = found.memory.peak
        screen.print(f"{gpu}: {verdict}; needs {size(peak.device_bytes)}, reserves {size(peak.reserve_bytes)}")
        screen.print(f"batch {now or 'unknown'} now; the largest that fits is {largest or 'unknown: see below'}")
        if found.advice:
            screen.print(advice(found.advice))
        for gap in [] if fits else found.unknowns[:8]:
            screen.print(f"unknown: {gap.what}: {gap.why}")
    raise typer.Exit(0 if fits else 1)
