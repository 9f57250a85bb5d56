"""``make demo``: the whole loop on this machine. Exit 0 when everything went as it should.

Starts NATS and every service in a folder of its own, shows a simulated fleet beside this machine's real CPU, submits
tasks of several kinds, shows why each device was chosen, really runs one task, and shows what it used and what the
estimator learned from it. Nothing is left running, and nothing is kept.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.rule import Rule
from rich.text import Text

from oarlock import AsyncClient, render
from oarlock.bundle import load
from oarlock.cli.watching import Screen
from oarlock.up import Up
from oarlock_schemas import RunRecord, TaskRecord

HERE = Path(__file__).parent
FLEET = HERE.parent / "deploy" / "fleets" / "seed.yaml"

TASKS = (
    ("the task file of the README: ERNIE by its name", "ernie_task.yaml", "succeeded"),
    ("a PaddlePaddle CNN on CIFAR-10, mixed precision", "paddle_cnn_cifar10.py", "succeeded"),
    ("a PaddlePaddle transformer, 1024 tokens", "paddle_transformer_long.py", "succeeded"),
    ("a PyTorch ResNet-50, DistributedDataParallel", "torch_resnet_ddp.py", "succeeded"),
    ("a language model that no device of the fleet holds", "torch_gpt_too_large.py", "rejected"),
)
REAL = "numpy_mlp.py"


def _rule(title: str, note: str = "") -> Rule:
    return Rule(Text.assemble((title, "bold"), "  ", note), align="left")


async def one(client: AsyncClient, screen: Screen, title: str, name: str, **changes: object) -> TaskRecord:
    """Submit one task and show what happens to it."""
    screen.console.print()
    screen.console.print(_rule(title, name))
    task_id = await client.submit(load(HERE / name, changes))
    async for event in client.events(task_id):
        screen.event(event.name, event.body)
    record = await client.wait(task_id)
    screen.say("ended", record.state + (" (simulated)" if record.simulated else ""))
    return record


async def really(client: AsyncClient, screen: Screen, title: str) -> tuple[TaskRecord, RunRecord | None]:
    """Run the NumPy script on this machine's CPU and show measured beside predicted."""
    record = await one(client, screen, title, REAL, arguments=["--seconds", "4"])
    run = await client.run_record(record.task_id)
    if run is not None:
        screen.console.print(render.runs([run]))
    return record, run


async def learned(client: AsyncClient, task_id: str) -> str:
    """What the estimator says it learned from the task's run."""
    try:
        async with asyncio.timeout(10):
            async for message in client.bus.watch(client.bus.subjects.estimator_recalibrated(), start="all"):
                body = message.json()
                if body["task_id"] == task_id:
                    moved = f"factor {body['factor_before']:.3f} → {body['factor_after']:.3f}"
                    return f"{moved} after {body['observations']} run(s)"
    except TimeoutError:
        pass
    return ""


async def fleet_ready(client: AsyncClient) -> None:
    """Wait until telemetry has reported the simulated devices and this machine."""
    async with asyncio.timeout(20):
        while not {"simulated", "cpu"} <= {
            "simulated" if d.state.simulated else d.state.vendor for d in await client.fleet()
        }:
            await asyncio.sleep(0.1)


async def show(up: Up, console: Console) -> list[str]:
    """Run everything; returns what went otherwise than it should."""
    screen, wrong = Screen(console), []
    async with await AsyncClient.connect(up.connection) as client:
        await fleet_ready(client)
        console.print(_rule("the fleet", "devices marked simulated do not exist"))
        console.print(render.fleet(await client.fleet()))
        for title, name, expected in TASKS:
            record = await one(client, screen, title, name)
            if record.state != expected:
                wrong.append(f"{name}: {record.state} ({record.message}), expected {expected}")
        first, before = await really(client, screen, "a NumPy script that really runs on this machine's CPU")
        lesson = await learned(client, first.task_id)
        screen.say("learned", lesson or "nothing")
        second, after = await really(client, screen, "the same script again, now that its first run is known")
        for record, run in ((first, before), (second, after)):
            if record.state != "succeeded" or record.simulated or run is None or not run.measured.peak_process_bytes:
                wrong.append(f"{REAL}: {record.state}, run record {run}")
        if not lesson:
            wrong.append("the estimator learned nothing from the real run")
        if before and after and before.measured.peak_process_bytes and after.measured.peak_process_bytes:
            errors = [
                abs((run.predicted.device_bytes or 0) / (run.measured.peak_process_bytes or 1) - 1)
                for run in (before, after)
            ]
            screen.say("error", f"{errors[0]:.1%} before the estimator had seen this script, {errors[1]:.1%} after")
            if errors[1] > max(errors[0], 0.05):
                wrong.append(f"the second prediction is worse than the first: {errors}")
        console.print()
        console.print(_rule("history"))
        await asyncio.sleep(0.2)
        console.print(render.runs(await client.history()))
    return wrong


def main() -> int:
    """Start, show, stop."""
    console, began = render.console(), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="oarlock-demo-") as folder:
        up = Up(
            Path(folder), fleet=FLEET, environment={"OARLOCK_SIMULATED_LONGEST_SECONDS": "2"}, tell=lambda _line: None
        )
        console.print("starting NATS and five services on free ports …")
        up.start()
        try:
            wrong = asyncio.run(show(up, console))
        finally:
            up.stop()
    console.print()
    for line in wrong:
        console.print(f"not as it should be: {line}", style="red")
    console.print(f"{'failed' if wrong else 'done'} after {time.monotonic() - began:.0f} s; nothing is left running")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
