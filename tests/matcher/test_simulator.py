"""The simulator on small files: layouts, determinism, output, errors."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from oarlock_matcher.core.policy_settings import DEFAULT_POLICY
from oarlock_matcher.simulator import run
from oarlock_matcher.simulator.arrivals import arrivals_run
from oarlock_matcher.simulator.cli import seeds_of
from oarlock_matcher.simulator.experiments import QUIET, fill_run
from oarlock_matcher.simulator.files import BadFile, read_jobs, read_nodes
from oarlock_matcher.simulator.plots import line_chart
from oarlock_matcher.simulator.policies import POLICY_NAMES
from oarlock_matcher.simulator.workload import asked_milli, capacity_milli, fill_up

OPENB_NODES = "sn,cpu_milli,memory_mib,gpu,model\n" + "".join(
    f"n{i},{32000 + 16000 * (i % 2)},131072,{4 + 4 * (i % 2)},{('G2', 'T4')[i % 2]}\n" for i in range(8)
)
OPENB_PODS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n" + "".join(
    f"p{i:03},{2000 + 1000 * (i % 5)},8192,{(1, 1, 1, 0, 2, 4)[i % 6]},"
    f"{0 if i % 6 == 3 else 1000 if i % 6 in (2, 4, 5) else 300 + 100 * (i % 5)},"
    f"{'T4' if i % 7 == 0 and i % 6 != 3 else ''}\n"
    for i in range(60)
)
OWN_NODES = """
nodes:
  - {name: a, site: lab, cpus: 32, memory_gib: 128, devices: [{kind: A100, count: 2, memory_gib: 40}]}
  - {name: r, site: lab, cpus: 16, memory_gib: 64, devices: [{kind: RTX 3090, count: 1, memory_gib: 24}]}
"""
OWN_TASKS = "task_id,devices,device_gib,kinds,arrival_seconds,duration_seconds\n" + (
    "one,1,20,RTX 3090,0,100\ntwo,1,30,,0,50\nthree,2,30,A100,10,30\nfour,1,20,RTX 3090,20,10\n"
)


@pytest.fixture
def openb(tmp_path: Path) -> tuple[Path, Path]:
    nodes, pods = tmp_path / "nodes.csv", tmp_path / "pods.csv"
    nodes.write_text(OPENB_NODES)
    pods.write_text(OPENB_PODS)
    return nodes, pods


@pytest.fixture
def own(tmp_path: Path) -> tuple[Path, Path]:
    nodes, tasks = tmp_path / "nodes.yaml", tmp_path / "tasks.csv"
    nodes.write_text(OWN_NODES)
    tasks.write_text(OWN_TASKS)
    return nodes, tasks


def test_fill_up_stretches_to_the_published_demand_and_is_seeded(openb: tuple[Path, Path]) -> None:
    nodes, jobs = read_nodes(openb[0]), read_jobs(openb[1])[:30]
    capacity = capacity_milli(nodes)
    assert sum(asked_milli(job) for job in jobs) < capacity
    workload = fill_up(jobs, capacity, 42)
    total = sum(asked_milli(job) for job in workload)
    assert 1.3 * capacity - 1000 < total <= 1.3 * capacity + 4000
    assert workload == fill_up(jobs, capacity, 42) != fill_up(jobs, capacity, 43)


def test_fill_up_cuts_what_is_too_much(openb: tuple[Path, Path]) -> None:
    jobs = read_jobs(openb[1])
    assert sum(asked_milli(job) for job in fill_up(jobs, 10_000, 1)) <= 13_000


@pytest.mark.parametrize("policy", POLICY_NAMES)
def test_every_policy_fills_the_fleet_the_same_way_twice(policy: str, openb: tuple[Path, Path]) -> None:
    nodes, jobs = read_nodes(openb[0]), read_jobs(openb[1])
    first = fill_run(nodes, jobs, policy, 42)
    assert first == fill_run(nodes, jobs, policy, 42)
    assert 60.0 < first.allocation_percent[100] <= 100.0
    assert all(key + 0.5 >= value for key, value in first.allocation_percent.items())


def test_arrivals_wait_run_and_end(own: tuple[Path, Path]) -> None:
    result = arrivals_run(read_nodes(own[0]), read_jobs(own[1]), DEFAULT_POLICY, 1, QUIET)
    # `three` needs both A100s, one of which `two` has until 50; `four` needs the 3090 that `one` has until 100.
    assert result.waits_seconds == (0.0, 0.0, 40.0, 80.0)
    assert (result.placed, result.rejected, result.never_placed) == (4, 0, 0)
    assert result.makespan_seconds == 110.0
    assert result.utilisation_percent == pytest.approx(100 * (100 + 50 + 60 + 10) / (3 * 110))


def test_json_names_the_default_and_means_by_percent(
    openb: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--nodes", str(openb[0]), "--tasks", str(openb[1]), "--seeds", "42-43", "--format", "json"]
    assert run(arguments) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["default_policy"] == DEFAULT_POLICY
    assert set(found["policies"]) == set(POLICY_NAMES)
    for policy in found["policies"].values():
        assert {"90", "100"} <= set(policy["allocation_percent"])


def test_table_marks_the_default(own: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--experiment", "arrivals", "--nodes", str(own[0]), "--tasks", str(own[1]), "--seeds", "1"]
    assert run([*arguments, "--policy", "rule_based", "first_fit"]) == 0
    assert "rule_based (default)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--policy", "nonsense"], "no policy 'nonsense'"),
        (["--seeds", "x"], "invalid literal"),
    ],
)
def test_bad_arguments_end_with_2(
    arguments: list[str], message: str, own: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["--nodes", str(own[0]), "--tasks", str(own[1]), *arguments]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("text", ["", "nodes: 3", "nodes: [{devices: 1}]", "{", "nodes: []"])
def test_bad_files_are_named(text: str, tmp_path: Path) -> None:
    path = tmp_path / "fleet.yaml"
    path.write_text(text)
    with pytest.raises(BadFile, match=r"fleet\.yaml"):
        read_nodes(path)


def test_seeds() -> None:
    assert seeds_of("42-44,7") == [42, 43, 44, 7]


def test_charts_are_valid_and_say_what_was_measured(
    openb: tuple[Path, Path], own: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fill = ["--nodes", str(openb[0]), "--tasks", str(openb[1]), "--seeds", "1", "--policy", "first_fit", "packing"]
    timed = ["--experiment", "arrivals", "--nodes", str(own[0]), "--tasks", str(own[1]), "--seeds", "1"]
    folder = tmp_path / "charts"
    assert run([*fill, "--plot", str(folder)]) == 0
    assert run([*timed, "--policy", "first_fit", "--plot", str(folder)]) == 0
    assert sorted(path.name for path in folder.iterdir()) == [
        "allocation.svg",
        "utilisation-first_fit.svg",
        "waits.svg",
    ]
    named = {"allocation.svg": {"first_fit", "packing"}, "utilisation-first_fit.svg": {"A100", "RTX 3090"}}
    for path in folder.iterdir():
        document = ElementTree.parse(path)
        texts = {text.text for text in document.iter("{http://www.w3.org/2000/svg}text")}
        assert named.get(path.name, {"first_fit"}) <= texts
        lines = [line.get("points", "").split() for line in document.iter("{http://www.w3.org/2000/svg}polyline")]
        assert all(len(line) > 50 for line in lines)
        spots = [tuple(map(float, spot.split(","))) for line in lines for spot in line]
        assert all(70 <= x <= 570 and 40 <= y <= 390 for x, y in spots)
    assert capsys.readouterr().err.count("wrote ") == 3


def test_charts_that_cannot_be_written_end_with_2(own: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--experiment", "arrivals", "--nodes", str(own[0]), "--tasks", str(own[1]), "--seeds", "1"]
    assert run([*arguments, "--policy", "first_fit", "--plot", str(own[0])]) == 2
    assert "charts cannot be written" in capsys.readouterr().err


def test_names_in_charts_are_escaped() -> None:
    chart = line_chart("a < b & c", "x", "y", {"<script>": [(0.0, 0.0), (3.0, 7.0)], "empty": []})
    assert ElementTree.fromstring(chart) is not None
    assert "<script>" not in chart
