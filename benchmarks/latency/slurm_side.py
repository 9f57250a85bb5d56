"""Slurm's side: Debian's own, on this machine alone, with as many slots as Oarlock gives a CPU, set to decide at once.

Needs root: munge, slurmctld and slurmd are started here, on free ports of 127.0.0.1, and ended again.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.latency.figures import Figures

SLOTS = 4
"""Jobs at once: what `oarlock_matcher` lets run at once on a machine's processors."""

_PATH = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
_PATIENCE_SECONDS = 60.0
_CONFIGURATION = """\
ClusterName=bench
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
SlurmctldPort={controller_port}
SlurmdPort={node_port}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CryptoType=crypto/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
# As quick as it can be made: a decision after each submission, at most 10 ms apart.
SchedulerParameters=sched_min_interval=10000,batch_sched_delay=0,bf_interval=1
SlurmdParameters=config_overrides
MinJobAge=300
NodeName={host} NodeAddr=127.0.0.1 CPUs={slots} Boards=1 SocketsPerBoard=1 CoresPerSocket={slots} ThreadsPerCore=1 \
RealMemory=1000 State=UNKNOWN
PartitionName=all Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


class SlurmUnavailable(RuntimeError):
    """Slurm cannot be started here; the message says why."""


def missing() -> str | None:
    """Why Slurm cannot be measured here; None when it can."""
    programs = ("munged", "slurmctld", "slurmd", "sbatch", "sinfo")
    absent = [name for name in programs if shutil.which(name, path=_PATH) is None]
    if absent:
        return f"no {', '.join(absent)} (Debian: munge slurmctld slurmd slurm-client)"
    return "root is needed" if os.geteuid() != 0 else None


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [int(probe.getsockname()[1]) for probe in probes]


@contextlib.contextmanager
def cluster(folder: Path) -> Iterator[dict[str, str]]:
    """A cluster of this machine alone; yields the environment in which Slurm's commands find it."""
    if why := missing():
        raise SlurmUnavailable(why)
    folder.mkdir(parents=True)
    folder.chmod(0o755)
    for name in ("state", "spool"):
        (folder / name).mkdir()
    key = folder / "munge.key"
    key.touch(mode=0o400)
    key.write_bytes(secrets.token_bytes(1024))
    controller_port, node_port = _free_ports(2)
    host = socket.gethostname().split(".")[0]
    text = _CONFIGURATION.format(
        folder=folder, host=host, slots=SLOTS, controller_port=controller_port, node_port=node_port
    )
    (folder / "slurm.conf").write_text(text)
    environment = {**os.environ, "PATH": _PATH, "SLURM_CONF": str(folder / "slurm.conf")}
    munge = [
        "munged",
        "--foreground",
        "--force",
        f"--key-file={key}",
        f"--socket={folder}/munge.socket",
        f"--pid-file={folder}/munged.pid",
        f"--log-file={folder}/munged.log",
        f"--seed-file={folder}/munge.seed",
    ]
    processes: list[subprocess.Popen[bytes]] = []
    try:
        for command, sign in (
            (munge, folder / "munge.socket"),
            (["slurmctld", "-D", "-c"], folder / "slurmctld.pid"),
            (["slurmd", "-D"], folder / "slurmd.pid"),
        ):
            with (folder / f"{command[0]}.out").open("wb") as out:
                processes.append(
                    subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
                )
            _await(sign.exists, f"{command[0]} did not start", processes[-1])
        _await(lambda: _idle(environment), "the node did not become idle", processes[-1])
        yield environment
        # A job's end is told after the job: a step that finds its controller gone would try for minutes.
        _await(lambda: not _output(environment, "squeue", "--noheader"), "jobs did not end", processes[-1])
        _await(lambda: not _steps(folder), "steps did not end", processes[-1])
    finally:
        for process in reversed(processes):
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _output(environment: dict[str, str], *command: str) -> str:
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def _idle(environment: dict[str, str]) -> bool:
    return _output(environment, "sinfo", "--noheader", "--format=%T") == "idle"


def _steps(folder: Path) -> list[Path]:
    """The sockets of job steps that still run."""
    return [path for path in (folder / "spool").iterdir() if path.is_socket()]


def _await(condition: Callable[[], bool], what: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not condition():
        if process.poll() is not None or time.monotonic() > deadline:
            raise SlurmUnavailable(what)
        time.sleep(0.02)


def measure(folder: Path, tasks: int, burst: int) -> Figures:
    """Start Slurm in ``folder``, measure ``tasks`` jobs one by one and ``burst`` at once, stop it."""
    figures = Figures("slurm")
    with cluster(folder / "slurm") as environment:
        told = folder / "slurm" / "told"
        told.mkdir()
        script = folder / "slurm" / "job.sh"
        # The interpreter that Oarlock's runs get, saying the same; renamed when whole, so that no half is read.
        script.write_text(
            "#!/bin/sh\n"
            f"{sys.executable} -c 'import time; print(time.time())' >{told}/$SLURM_JOB_ID.part\n"
            f"mv {told}/$SLURM_JOB_ID.part {told}/$SLURM_JOB_ID\n"
        )
        submit = ["sbatch", "--parsable", "--ntasks=1", "--output=/dev/null", "--error=/dev/null", str(script)]

        def one() -> Path:
            done = subprocess.run(submit, env=environment, capture_output=True, text=True, check=True)
            return told / done.stdout.strip()

        def await_all(paths: list[Path]) -> None:
            deadline = time.monotonic() + _PATIENCE_SECONDS + len(paths)
            waiting = set(paths)
            while waiting:
                waiting = {path for path in waiting if not path.exists()}
                if time.monotonic() > deadline:
                    raise SlurmUnavailable(f"{len(waiting)} jobs did not end; see {folder}/slurm/slurmctld.log")
                time.sleep(0.002)

        await_all([one()])
        for _ in range(tasks):
            begun = time.time()
            path = one()
            await_all([path])
            figures.running_seconds.append(float(path.read_text()) - begun)
        begun = time.time()
        await_all([one() for _ in range(burst)])
        figures.burst_tasks, figures.burst_seconds = burst, time.time() - begun
    return figures
