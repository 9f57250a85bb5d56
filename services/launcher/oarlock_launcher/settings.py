"""Settings of the launcher, read once in ``__main__``. Environment variables with the prefix ``OARLOCK_``."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path
from typing import Literal

from pydantic import Field

from oarlock_runtime import RuntimeSettings, escape_token


class LauncherSettings(RuntimeSettings):
    """One launcher serves the real devices of one node of a site, and alone unless ``site_shared``."""

    site: str = "local"
    """The site whose placements are started here."""

    node: str = Field(default_factory=lambda: escape_token(socket.gethostname()).replace("=", "_"))
    """This machine's name in the inventory; telemetry on it must use the same. Default: its host name."""

    site_shared: bool = False
    """Whether other launchers serve other nodes of the site. Then this one hears every placement of the site under a
    durable name of its own, takes those of its node, and runs its part of those that span several nodes."""

    node_address: str | None = None
    """Where the other nodes of the site reach this one. Default: the address from which it reaches the bus."""

    gang_lost_seconds: float = Field(default=120.0, gt=0)
    """How long a node may report no devices, and its launcher not answer, before its part of a run over several nodes
    is given up as lost."""

    runtime: Literal["process", "docker"] = "process"
    """How runs are started. ``process`` needs nothing; ``docker`` isolates."""

    data_dir: Path = Path("~/.local/share/oarlock/launcher")
    """Records of runs and their working folders. One launcher at a time."""

    fleet: Path | None = None
    """A fleet file: its simulated sites are served too, by runs that execute nothing."""

    run_grace_seconds: float = Field(default=10.0, ge=0, le=3600)
    """Between asking a run to end (SIGTERM) and killing it: time to write a checkpoint."""

    allowed_paths: str | None = None
    """Folders (separated by ``:``) that ``source.path`` and mounts may name. Default: none with ``docker``; all with
    ``process``, whose runs can read what the launcher can, unless ``process_user`` is set."""

    max_code_bytes: int = Field(default=512 * 1024**2, gt=0)
    """Largest code of a task, unpacked."""

    python: str = sys.executable
    """Interpreter of runs in ``process``."""

    process_user: str | None = None
    """Account that runs get (the launcher must be root). Default: the launcher's own."""

    process_memory_bytes: int | None = Field(default=None, gt=0)
    """Address space of a run. Default: unlimited, since a GPU program maps far more than it uses."""

    process_max_processes: int | None = Field(default=None, gt=0)
    """Processes of the account that runs get. Default: 4096 with ``process_user``, else the system's."""

    run_variables: str = "LD_LIBRARY_PATH,TZ,SSL_CERT_FILE"
    """Variables of the launcher that runs may see. None that begins with OARLOCK_ is ever passed on."""

    docker_host: str | None = Field(default=None, validation_alias="DOCKER_HOST")
    """Address of the engine. Default: its usual socket."""

    docker_network: str | None = None
    """Network of containers: ``none`` cuts them off. Default: the engine's default network."""

    docker_gang_network: str | None = None
    """Network of containers whose task runs on several nodes: ``host``, or one that spans the nodes. Default: none,
    and such tasks are refused, since a container of the usual network cannot be reached from another node."""

    docker_user: str | None = None
    """User inside containers (``uid:gid``). Default: the image's."""

    docker_memory_bytes: int | None = Field(default=None, gt=0)
    """Main memory of a container. Default: none for accelerators; twice the booking for a task on the CPU."""

    docker_shm_bytes: int = Field(default=8 * 1024**3, gt=0)
    """Shared memory of a container, which data loaders use."""

    docker_max_processes: int = Field(default=4096, gt=0)
    """Processes of a container."""

    docker_pull: bool = True
    """Whether an image that is not on the engine is pulled."""

    docker_host_dir: Path | None = None
    """``data_dir`` as the engine's machine names it, where the launcher itself runs in a container."""

    docker_workspace_writable: bool = False
    """Whether a run may write into its own code folder; ``/output`` is always writable."""

    images: Path | None = None
    """YAML list of image entries (``image``, ``framework``, ``vendor``, ``kind``, ``driver``) that go before ours."""

    log_lines_per_second: float = Field(default=200.0, gt=0)
    """Lasting rate of a run's log lines on the bus."""

    log_total_bytes: int = Field(default=16 * 1024**2, gt=0)
    """Bytes of a run's log on the bus."""

    simulated_shortest_seconds: float = Field(default=1.0, ge=0)
    """Least duration of a simulated run."""

    simulated_longest_seconds: float = Field(default=5.0, gt=0)
    """Greatest duration of a simulated run."""

    @property
    def folder(self) -> Path:
        """``data_dir`` with ``~`` resolved."""
        return self.data_dir.expanduser().absolute()

    @property
    def allowed(self) -> tuple[Path, ...]:
        """The folders of ``allowed_paths``."""
        if self.allowed_paths is not None:
            return tuple(Path(part).expanduser() for part in self.allowed_paths.split(os.pathsep) if part)
        return (Path("/"),) if self.runtime == "process" and self.process_user is None else ()

    @property
    def passed_variables(self) -> dict[str, str]:
        """The launcher's variables that runs may see."""
        names = [name.strip() for name in self.run_variables.split(",")]
        return {n: os.environ[n] for n in names if n in os.environ and not n.upper().startswith("OARLOCK_")}
