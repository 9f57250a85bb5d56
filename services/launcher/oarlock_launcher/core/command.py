"""The command line of a run, with the distributed start line where it has several devices."""

from __future__ import annotations

from dataclasses import dataclass

from oarlock_launcher.core.run import Gang, Rendezvous


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
    gang: Gang | None = None
    rendezvous: Rendezvous | None = None

    @property
    def numbered_by_others(self) -> bool:
        """Whether a framework's own launcher (or the task's command) starts a process for each device.

        In a gang the same on every node, those with a single device too.
        """
        several = max(self.gang.counts if self.gang else (self.device_count,)) > 1
        return several and (bool(self.command) or self.framework in ("paddlepaddle", "pytorch"))


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
    if not program.numbered_by_others:
        return (python, "-u", *script)
    if program.framework == "paddlepaddle":
        names = program.visible or tuple(str(number) for number in range(program.device_count))
        launch = (python, "-u", "-m", "paddle.distributed.launch", *_paddle_nodes(program))
        return (*launch, "--devices", ",".join(names), *script)
    launcher = torchrun or (python, "-u", "-m", "torch.distributed.run")
    return (*launcher, *_torch_nodes(program), "--nproc-per-node", str(program.device_count), *script)


def _paddle_nodes(program: Program) -> tuple[str, ...]:
    """Its launchers meet on a port of their own: the first process takes MASTER_PORT itself."""
    gang, met = program.gang, program.rendezvous
    if gang is None or met is None:
        return ()
    nodes, rank, address = str(len(gang.nodes)), str(gang.node_rank), met.addresses[gang.node_rank]
    master = f"{met.addresses[0]}:{met.ports[0][0]}"
    return ("--nnodes", nodes, "--rank", rank, "--master", master, "--host", address)


def _torch_nodes(program: Program) -> tuple[str, ...]:
    gang, met = program.gang, program.rendezvous
    if gang is None or met is None:
        return ("--standalone",)
    where = ("--master-addr", met.addresses[0], "--master-port", str(met.master_port))
    return ("--nnodes", str(len(gang.nodes)), "--node-rank", str(gang.node_rank), *where)
