"""The command line of a run, with the distributed start line where it has several devices."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Program:
    """What is to be run.

    ``entry``: path of the script as the run sees it. ``visible``: the names by which the framework's own launcher
    selects devices, when a visibility variable gives them names; otherwise they are numbered from 0.
    """

    framework: str | None
    entry: str | None
    arguments: tuple[str, ...] = ()
    command: tuple[str, ...] | None = None
    device_count: int = 1
    visible: tuple[str, ...] | None = None


class NothingToRun(ValueError):
    """Neither code nor a command was given."""


def command_line(program: Program, python: str, *, torchrun: tuple[str, ...] | None = None) -> tuple[str, ...]:
    """The argument vector.

    Args:
        program: what is to be run.
        python: the interpreter.
        torchrun: how to call PyTorch's launcher; the interpreter's module where it is None.

    Raises:
        NothingToRun: the task has only a declaration.

    ``paddle.distributed.launch`` looks its ``--devices`` up in the visibility variable when there is one, and counts
    from 0 otherwise (paddle/distributed/launch/context/device.py, 3.3).
    """
    if program.command:
        return (*program.command, *program.arguments)
    if program.entry is None:
        raise NothingToRun("the task has no code to run: give source.inline, bundle, path or git, or a command")
    script = (program.entry, *program.arguments)
    if program.device_count > 1 and program.framework == "paddlepaddle":
        names = program.visible or tuple(str(number) for number in range(program.device_count))
        return (python, "-u", "-m", "paddle.distributed.launch", "--devices", ",".join(names), *script)
    if program.device_count > 1 and program.framework == "pytorch":
        launcher = torchrun or (python, "-u", "-m", "torch.distributed.run")
        return (*launcher, "--standalone", "--nproc-per-node", str(program.device_count), *script)
    return (python, "-u", *script)
