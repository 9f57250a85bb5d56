"""The bounded runner, with real programs, and the words tools use for a missing value."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oarlock_accelerators import readings
from oarlock_accelerators.tool import ToolError, ToolMissing, run_tool

_MIB = 1024**2


def test_output_of_a_tool_with_a_plain_locale() -> None:
    assert run_tool((sys.executable, "-c", "import os; print(os.environ['LC_ALL'])")) == "C\n"


def test_missing_and_failing_tools() -> None:
    with pytest.raises(ToolMissing, match="acme-smi is not on the PATH"):
        run_tool(("acme-smi",))
    with pytest.raises(ToolError, match="status 3"):
        run_tool((sys.executable, "-c", "raise SystemExit(3)"))


def test_slow_tool_is_ended_with_everything_it_started(tmp_path: Path) -> None:
    noted = tmp_path / "pid"
    script = (
        "import pathlib, subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import sys; sys.stdin.read()'], stdin=subprocess.PIPE)\n"
        f"pathlib.Path({str(noted)!r}).write_text(str(child.pid))\n"
        "child.wait()\n"
    )
    started = time.monotonic()
    with pytest.raises(ToolError, match="did not answer in time"):
        run_tool((sys.executable, "-c", script), timeout_seconds=2.0)
    assert time.monotonic() - started < 8
    helper = int(noted.read_text())
    if psutil.pid_exists(helper):
        gone, _ = psutil.wait_procs([psutil.Process(helper)], timeout=5)
        assert gone or psutil.Process(helper).status() == psutil.STATUS_ZOMBIE


def test_output_is_capped() -> None:
    with pytest.raises(ToolError, match="printed more than 1000 bytes"):
        run_tool((sys.executable, "-c", "while True: print('x' * 5000)"), output_limit_bytes=1000)


def test_odd_bytes_do_not_break_it() -> None:
    text = run_tool((sys.executable, "-c", "import sys; sys.stdout.buffer.write(b'\\xff\\xfe 12')"))
    assert readings.number(text) == 12


def test_standard_input_is_closed() -> None:
    assert run_tool((sys.executable, "-c", "import sys; print(repr(sys.stdin.read()))")) == "''\n"


@pytest.mark.parametrize(
    "cell",
    ["N/A", "[N/A]", "NA", "-", "[Not Found]", "[Unknown Error]", "UNKNOWN", "None", "/", "", "  ", None, {}, []],
)
def test_every_spelling_of_missing_is_missing_and_never_zero(cell: object) -> None:
    assert readings.text(cell) is None
    assert readings.number(cell) is None
    assert readings.size(cell) is None
    assert readings.ratio(cell) is None
    assert readings.integer(cell) is None


def test_units() -> None:
    assert readings.size("49152MiB") == 49152 * _MIB
    assert readings.size("58214") == 58214 * _MIB
    assert readings.size("2 GiB") == 2048 * _MIB
    assert readings.size("171148378112 B") == 171148378112
    assert readings.ratio("97.5%") == 0.975
    assert readings.ratio("100.4") == 1.0
    assert readings.ratio("-3") is None
    assert readings.used_and_total("N/A MiB/ 23374 MiB") == (None, 23374 * _MIB)
    assert readings.used_and_total("826/65536 MiB") == (826 * _MIB, 65536 * _MIB)
    assert readings.used_and_total("N/A") == (None, None)
    assert readings.watts("N/A  62C  P0    N/A / 350W") is None
    assert readings.watts("N/A   63C  N/A    341W / 400W") == 341
    assert readings.celsius("N/A   63C  N/A    341W / 400W") == 63
    assert readings.bus_id("00000000:3D:00.0 N/A") == "0000:3d:00.0"
    assert readings.bus_id("00:08:00.0  Disable") == "0000:08:00.0"
    assert readings.bus_id("3D:00.0") == "0000:3d:00.0"
    assert readings.bus_id("12:30:45") is None


@given(st.text(max_size=200))
def test_no_text_breaks_the_readers(text: str) -> None:
    for read in (readings.text, readings.number, readings.size, readings.ratio, readings.integer):
        read(text)
    readings.used_and_total(text)
    readings.celsius(text)
    readings.watts(text)
    list(readings.blocks(text))
