"""The process that reads mutations: the service's limited reader, many readings in one process, and a hook that sees
what the host does meanwhile.

Started by ``fuzz.py``. A job comes pickled on standard input, the answer goes out as a line of JSON.
"""

# ruff: noqa: SIM905 - a list of names reads best as words

from __future__ import annotations

import gc
import importlib.util
import json
import pickle
import resource
import struct
import sys
import time
from pathlib import Path
from typing import Any

import oarlock_profiler
import oarlock_schemas
from oarlock_profiler.adapters import isolated
from oarlock_profiler.adapters.portray import Job
from oarlock_profiler.core.interpreter.newer_syntax import NOWHERE
from oarlock_profiler.core.overlays import areas, load

_FORBIDDEN = tuple(
    "os.system os.exec os.posix_spawn os.spawn os.fork os.remove os.rename os.mkdir os.rmdir os.link os.symlink "
    "os.chmod os.chown os.truncate os.putenv os.unsetenv os.kill subprocess. socket. ctypes. shutil. tempfile. "
    "pickle.find_class code.__new__ sys.settrace sys.setprofile webbrowser.open pty.spawn urllib. ftplib. smtplib. "
    "syslog.".split()
)
_PACKAGES = (oarlock_profiler, oarlock_schemas)
_OURS = tuple(str(Path(package.__file__).parent) + "/" for package in _PACKAGES if package.__file__)
# the host's own codecs, of a fixed list, are imported when a file or a text is first met in one
_CODECS = str(Path(importlib.util.find_spec("encodings").origin or "").parent) + "/"  # type: ignore[union-attr]


_LIFE_SECONDS = 10**6


class Witness:
    """Notes whatever the host does during a reading that no reading may do."""

    def __init__(self) -> None:
        self.bundle: str | None = None
        self.seen: list[str] = []
        sys.addaudithook(self.hook)

    def hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        """An audit hook (PEP 578)."""
        if self.bundle is None:
            return
        if event == "open":
            self._opened(arguments)
        elif event == "exec":
            file = getattr(arguments[0], "co_filename", "?")
            if not file.startswith((*_OURS, _CODECS)):
                self.seen.append(f"executed {file}")
        elif event == "import":
            if not str(arguments[0]).startswith(("oarlock_", "encodings.")):
                self.seen.append(f"imported {arguments[0]}")
        elif event == "os.listdir":
            if not self._inside(str(arguments[0])):
                self.seen.append(f"listed {arguments[0]}")
        elif event.startswith(_FORBIDDEN):
            self.seen.append(f"{event} {str(arguments)[:100]}")

    def _opened(self, arguments: tuple[Any, ...]) -> None:
        path, mode, flags = str(arguments[0]), arguments[1], arguments[2] if len(arguments) > 2 else 0
        if path == NOWHERE:
            return
        writes = (isinstance(mode, str) and set(mode) & set("wax+")) or (isinstance(flags, int) and flags & 0o3)
        if writes or not (path.startswith((*_OURS, _CODECS)) or self._inside(path)):
            self.seen.append(f"opened {path}")

    def _inside(self, path: str) -> bool:
        return str(Path(path).absolute()).startswith(str(self.bundle))


def main(arguments: list[str]) -> int:
    """Read jobs until standard input ends."""
    memory_bytes, seconds = int(arguments[0]), int(arguments[1])
    witness = Witness()
    # processor time is limited anew for each reading, which only the soft limit allows
    isolated.limit(memory_bytes, _LIFE_SECONDS)
    # all of ours that a reading may need, so that what is imported later is the script's doing
    for library in areas():
        load(library)
    while True:
        head = sys.stdin.buffer.read(4)
        if len(head) < 4:
            return 0
        bundle, job = pickle.loads(sys.stdin.buffer.read(struct.unpack("<I", head)[0]))
        if bundle is not None and not gc.get_freeze_count():
            # what stays is not to be searched for garbage after every reading
            gc.freeze()
        sys.stdout.write(json.dumps(_read(job, bundle, witness, seconds), allow_nan=False) + "\n")
        sys.stdout.flush()


def _read(job: Job, bundle: str | None, witness: Witness, seconds: int) -> dict[str, object]:
    started, spent = time.monotonic(), time.process_time()
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    resource.setrlimit(resource.RLIMIT_CPU, (int(spent) + seconds + 1, hard))
    witness.seen.clear()
    witness.bundle = bundle
    try:
        answer = isolated.answer(job)
    except MemoryError:
        answer = {"code": "too_large", "message": "MemoryError"}
    finally:
        witness.bundle = None
    answer["seen"] = list(witness.seen)
    answer["wall_seconds"] = time.monotonic() - started
    answer["cpu_seconds"] = time.process_time() - spent
    answer["peak_bytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return answer


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
