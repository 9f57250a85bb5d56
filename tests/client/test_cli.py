"""The command as a person meets it: exit codes, JSON, messages."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from oarlock_schemas import Portrait, read

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"


def oarlock(*arguments: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("OARLOCK_")} | variables
    environment |= {"OARLOCK_DATA_DIR": str(folder / "data"), "OARLOCK_NATS_URL": "nats://127.0.0.1:1"}
    command = [sys.executable, "-m", "oarlock", *arguments]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, errors="replace", timeout=120, check=False, cwd=folder
    )


def test_explain_prints_a_portrait_that_fits_the_schema(tmp_path: Path) -> None:
    done = oarlock("explain", str(EXAMPLES / "torch_resnet_ddp.py"), "--format", "json", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    portrait, ignored = read(Portrait, document)
    assert ignored == []
    assert portrait.framework == "pytorch" and portrait.method == "interpreted"
    assert portrait.parameters.total == 25_557_032
    assert portrait.batch.size_per_device == 128
    assert set(document) >= {
        "framework", "kind", "method", "confidence", "parameters", "batch", "precision", "optimizer", "distributed",
        "memory", "compute", "kernels", "flags", "evidence", "unknowns",
    }  # fmt: skip


def test_the_scripts_arguments_come_after_two_dashes(tmp_path: Path) -> None:
    script = str(EXAMPLES / "paddle_cnn_cifar10.py")
    done = oarlock("explain", script, "--format", "json", "--", "--batch-size", "32", "--width", "8", folder=tmp_path)
    portrait, _ = read(Portrait, json.loads(done.stdout))
    assert portrait.batch.size_per_device == 32
    assert portrait.parameters.total is not None and portrait.parameters.total < 200_000


@pytest.mark.parametrize(("gpu", "code", "verdict"), [("A100-SXM4-80GB", 0, "fits"), ("RTX_3090", 1, "oom")])
def test_explain_says_whether_a_device_holds_it(tmp_path: Path, gpu: str, code: int, verdict: str) -> None:
    script = str(EXAMPLES / "paddle_transformer_long.py")
    done = oarlock("explain", script, "--gpu", gpu, "--format", "json", folder=tmp_path)
    portrait, _ = read(Portrait, json.loads(done.stdout))
    assert (done.returncode, portrait.fit and portrait.fit.verdict) == (code, verdict)
    if verdict == "oom":
        assert portrait.advice and all(item.text_zh for item in portrait.advice)


def test_fit_names_the_largest_batch(tmp_path: Path) -> None:
    script = str(EXAMPLES / "paddle_transformer_long.py")
    done = oarlock("fit", script, "--gpu", "RTX 3090", "--format", "json", folder=tmp_path)
    answer = json.loads(done.stdout)
    assert done.returncode == 1 and answer["batch_size"] == 16
    assert 1 <= answer["largest_batch_size"] < 16


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["explain", "nothing.py"], 2, "does not exist"),
        (["explain", "empty.py", "--gpu", "A1000000"], 2, "A1000000"),
        (["explain", "bad.yaml"], 2, "$.priority"),
        (["explain", "/dev/null"], 2, "does not exist"),
        (["explain", "folder"], 2, "main.py"),
        (["explain", "broken.zip"], 2, "archive"),
        (["explain", "folder.yaml"], 2, "folder.yaml"),
        (["explain", "declares.yaml"], 2, "model_name"),
        (["submit", "folder.yaml"], 2, "folder.yaml"),
        (["submit", "nothing.py"], 2, "does not exist"),
        (["submit", "bad.yaml"], 2, "$.priority"),
        (["submit", "empty.py", "--gpus", "some"], 2, "--gpus"),
        (["submit", "empty.py", "--shared", "--exclusive"], 2, "exclude each other"),
        (["simulate", "--nodes", "nothing.csv", "--tasks", "nothing.csv"], 2, "nothing.csv"),
        (["frobnicate"], 2, "frobnicate"),
        (["ps"], 1, "oarlock up"),
    ],
)
def test_wrong_use_is_told_and_has_its_exit_code(tmp_path: Path, arguments: list[str], code: int, words: str) -> None:
    (tmp_path / "empty.py").write_text("x = 1\n")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder.yaml").mkdir()
    (tmp_path / "broken.zip").write_bytes(b"PK\x03\x04 and no more")
    (tmp_path / "declares.yaml").write_text("name: x\n")
    (tmp_path / "bad.yaml").write_text("priority: 9000\n")
    done = oarlock(*arguments, folder=tmp_path)
    assert done.returncode == code, done.stdout + done.stderr
    assert words in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_a_script_that_cannot_be_parsed_is_placed_not_crashed(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("import torch\nx = (\n")
    done = oarlock("explain", "broken.py", "--format", "json", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    unknowns = json.loads(done.stdout)["unknowns"]
    assert any(u["file"] == "broken.py" and u["line"] for u in unknowns), unknowns


def test_doctor_names_what_is_there_and_how_to_get_the_rest(tmp_path: Path) -> None:
    done = oarlock("doctor", "--format", "json", folder=tmp_path)
    checks = {check["name"]: check for check in json.loads(done.stdout)}
    assert done.returncode == 0 and checks["nats-server"]["ok"]
    assert all(check["ok"] or check["fix"] for check in checks.values())
