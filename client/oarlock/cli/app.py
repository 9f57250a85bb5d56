"""The command's frame: its verbs, and how errors become messages and exit codes (0 ok, 1 failed, 2 usage)."""

from __future__ import annotations

import sys

import typer

from oarlock.cli import (
    bus_verbs,
    calibration_verbs,
    operator_verbs,
    planning_verbs,
    reading_verbs,
    service_verbs,
    window_verbs,
)
from oarlock.terminal import forgive_encodings

app = typer.Typer(
    name="oarlock",
    help="Reads a training script, sizes it, finds the accelerator that suits it, runs it there, and learns.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for verbs in (reading_verbs, service_verbs, bus_verbs, calibration_verbs, operator_verbs, window_verbs, planning_verbs):
    verbs.add_to(app)


def main() -> None:
    """Run the command; known errors become one clear message on standard error."""
    forgive_encodings()
    try:
        app()
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        sys.exit(0)
    except Exception as error:
        code = _explain(error)
        if code is None:
            raise
        sys.exit(code)


def _explain(error: Exception) -> int | None:
    """Print what is known of ``error`` and return the exit code; None for what nobody foresaw."""
    from oarlock.bundle import BundleError
    from oarlock.render import console, faults
    from oarlock.sdk import DeviceNotFound, TaskNotFound, WindowExists, WindowNotFound
    from oarlock.up import UpError
    from oarlock_runtime import OarlockError
    from oarlock_schemas import InvalidMessage

    screen = console(stderr=True)
    if isinstance(error, InvalidMessage):
        screen.print("the task cannot be taken as it is", style="red")
        screen.print(faults({"path": f.path, "message": f.message} for f in error.faults))
        return 2
    if isinstance(error, BundleError):
        screen.print(str(error), style="red")
        return 2
    if isinstance(error, TaskNotFound | DeviceNotFound | WindowNotFound | WindowExists | UpError | OarlockError):
        screen.print(str(error), style="red")
        return 1
    if isinstance(error, OSError) and error.filename is not None:
        screen.print(f"{error.filename}: {error.strerror}", style="red")
        return 2
    return None
