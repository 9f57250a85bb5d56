"""What strangers wrote reaches the terminal as text, never as a command to it."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stdout
from pathlib import Path

import pytest
from rich.table import Table

from oarlock import render
from oarlock.cli.options import print_json
from oarlock.terminal import Terminal, plain
from oarlock_schemas import TaskRecord

from .test_cli import oarlock

HOSTILE = "\x1b]0;title\x07\x1b[2J\x1b[31mred\x1b[0m \x9b31m \x08 \u202e [/bold][red] :rocket: \ud800"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b[2J\x1b]0;title\x07", "\\x1b[2J\\x1b]0;title\\x07"),
        ("\x9b2J\x7f", "\\x9b2J\\x7f"),
        ("over\rwritten", "over\\x0dwritten"),
        ("abc\u202edef", "abc\\u202edef"),
        ("half \ud800", "half \\ud800"),
        ("tab\tand 中文 and é stay", "tab\tand 中文 and é stay"),
    ],
)
def test_commands_become_visible_and_text_stays(text: str, shown: str) -> None:
    assert plain(text) == shown


def test_a_table_of_hostile_names_is_printed_as_it_is_written() -> None:
    out = io.StringIO()
    screen = Terminal()
    screen.file = out
    for name in ("[/bold][red]", ":rocket:", "\x1b[2J", "\x07\x08", "\x9b", "\u202e"):
        screen.print(render.tasks([TaskRecord(task_id="t1", name=name)]))
        table = Table("[link=x]head")
        table.add_row(name)
        screen.print(table)
    written = out.getvalue()
    assert written.count("[/bold][red]") == written.count(":rocket:") == 2
    assert not set(written) & {"\x1b", "\x07", "\x08", "\x9b", "\u202e"}


def test_json_holds_the_same_value_and_no_command() -> None:
    out = io.StringIO()
    with redirect_stdout(out):
        print_json({"name": HOSTILE})
    assert json.loads(out.getvalue()) == {"name": HOSTILE}
    assert not set(out.getvalue()) & {"\x1b", "\x07", "\x9b", "\u202e", "\ud800"}


def test_names_of_files_and_layers_are_not_taken_for_markup(tmp_path: Path) -> None:
    missing = oarlock("explain", "[/red]nothing.py", folder=tmp_path)
    assert missing.returncode == 2 and "[/red]nothing.py does not exist" in missing.stderr
    (tmp_path / "model.py").write_text(
        "import torch\nfrom torch import nn\nm = nn.Module()\nm.add_module('\\x1b[2J[/bold]x', nn.Linear(4, 4))\n"
        "m._modules['\\x1b[2J[/bold]x'](torch.ones(2, 4)).sum().backward()\nundefined['[/red]\\x1b[2J']\n"
    )
    read = oarlock("explain", "model.py", folder=tmp_path)
    assert read.returncode == 0, read.stderr
    assert "\x1b" not in read.stdout


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_terminal_without_unicode_is_no_reason_to_fail(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "x.py").write_text("print('中文')\n", encoding="utf-8")
    shown = oarlock("explain", "x.py", folder=tmp_path, PYTHONIOENCODING=encoding)
    assert shown.returncode == 0, shown.stderr
    document = oarlock("explain", "x.py", "--format", "json", folder=tmp_path, PYTHONIOENCODING=encoding)
    assert json.loads(document.stdout)["method"] == "cold_start"
