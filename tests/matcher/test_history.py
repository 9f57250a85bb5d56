"""Every decision of the recorded history comes out again as it did, bit for bit, here and on other processors."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
from typer.testing import CliRunner

from oarlock.cli.app import app
from oarlock_matcher.adapters.decision_log import replay_file
from oarlock_matcher.core.effects import Effect, Placed, Preempt, Queued, Rejected, Reserve
from oarlock_matcher.core.machine import decide
from oarlock_matcher.core.recording import decode
from oarlock_matcher.core.state import MatcherState

from .history import FILE, SETTINGS, write

LEAST_DECISIONS = 500


def test_the_history_comes_out_again_bit_for_bit() -> None:
    (_, decisions, mismatches), *others = replay_file(FILE)
    assert not others and decisions >= LEAST_DECISIONS
    assert mismatches == []


def test_the_history_holds_what_it_is_kept_for() -> None:
    state, effects = MatcherState(settings=SETTINGS), list[Effect]()
    for line in FILE.read_text(encoding="utf-8").splitlines()[1:]:
        entry = json.loads(line)
        state, told = decide(state, decode(entry["event"]), entry["now"])
        effects += told
        assert state.faults() == []
    placed: list[Placed] = [effect.placed for effect in effects if isinstance(effect, Reserve)]
    assert sum(len(p.shares) > 1 for p in placed) > 10, "gangs"
    assert any(len(p.node_shares) > 1 for p in placed), "gangs over several nodes"
    assert sum(any(s.milli < 1000 for s in p.shares) for p in placed) > 10, "sharing"
    assert {p.policy for p in placed} == {"rule_based", "rl_based", "fgd"}
    assert any(p.shadow is not None for p in placed)
    assert any(isinstance(effect, Preempt) for effect in effects)
    codes = Counter(e.code for e in effects if isinstance(e, Rejected))
    assert codes["timeout"] and codes["no_device_fits"] and codes["dependency_failed"]
    waits = Counter(reason.code for e in effects if isinstance(e, Queued) for reason in e.reasons)
    expected = {"quota", "maintenance", "reserved", "unavailable", "draining", "busy", "array_limit", "after", "held"}
    assert expected <= set(waits), expected - set(waits)


def test_recording_it_anew_gives_the_same_file(tmp_path: Path) -> None:
    write(tmp_path / "again.jsonl")
    assert (tmp_path / "again.jsonl").read_text(encoding="utf-8") == FILE.read_text(encoding="utf-8")


def test_processors_without_wide_instructions_decide_the_same() -> None:
    """Some of numpy's routines add up in another order where registers are wider; decisions may not hang on that."""
    wide = np.show_config(mode="dicts")["SIMD Extensions"]["found"]
    fewer = {**os.environ, "NPY_DISABLE_CPU_FEATURES": " ".join(wide), "OPENBLAS_CORETYPE": "Prescott"}
    code = "import sys; from pathlib import Path; from oarlock_matcher.adapters.decision_log import replay_file; "
    code += "print([len(wrong) for _, _, wrong in replay_file(Path(sys.argv[1]))])"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, str(FILE)], env=fewer, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[0]"


def test_the_command_replays_it_and_notices_a_change(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["replay", str(FILE), "--format", "json"])
    assert done.exit_code == 0, done.output
    (reign,) = json.loads(done.stdout)
    assert reign["decisions"] >= LEAST_DECISIONS and reign["mismatches"] == []
    first, *lines = FILE.read_text(encoding="utf-8").splitlines()
    changed = json.loads(first)
    changed["settings"]["fields"]["ageing_seconds"] = 3.0
    (tmp_path / "changed.jsonl").write_text("\n".join([json.dumps(changed), *lines]) + "\n")
    assert CliRunner().invoke(app, ["replay", str(tmp_path / "changed.jsonl")]).exit_code == 1
