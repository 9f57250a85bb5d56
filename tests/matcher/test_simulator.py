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
from oarlock_matcher.simulator.drawing import line_chart
from oarlock_matcher.simulator.experiments import QUIET, fill_run
from oarlock_matcher.simulator.files import read_jobs, read_nodes
from oarlock_matcher.simulator.policies import POLICY_NAMES
from oarlock_matcher.simulator.rows import BadFile
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


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("t.csv", OPENB_PODS + "p,2000,8192,one,1000,\n", r"t\.csv:62: `num_gpu` is 'one'\. Write a number"),
        ("t.csv", OPENB_PODS + "p,2000,8192,1\n", r"t\.csv:62: has 4 fields, the header has 6\. Give it one field"),
        ("t.csv", OPENB_PODS + "p,2000,8192,1,1000,T4,x\n", r"t\.csv:62: has 7 fields"),
        ("t.csv", OPENB_PODS + ",2000,8192,1,1000,\n", r"t\.csv:62: `name` is missing"),
        ("t.csv", OPENB_PODS + "p,,8192,1,1000,\n", r"t\.csv:62: `cpu_milli` is missing"),
        ("t.csv", OPENB_PODS + "p,nan,8192,1,1000,\n", r"t\.csv:62: `cpu_milli` is 'nan'"),
        ("t.csv", OPENB_PODS + "p,2000,8192,1.5,1000,\n", r"t\.csv:62: `num_gpu` is 1\.5\. Write a whole number"),
        ("t.csv", OPENB_PODS + "p,2000,-1,1,1000,\n", r"t\.csv:62: `memory_mib` is '-1'"),
        ("t.csv", OPENB_PODS + "p,2000,8192,1,2000,\n", r"t\.csv:62: task p: compute_milli must lie in 1\.\.1000"),
        ("t.csv", OPENB_PODS + 'p,2000,8192,1,1000,"T4\n', r"t\.csv:62: is not CSV"),
        ("t.csv", OPENB_PODS.replace(",", ";"), r"t\.csv:1: the fields are not divided by commas"),
        ("t.csv", "name,name\na,b\n", r"t\.csv:1: column 'name' stands in the header twice"),
        ("t.csv", "what,else\na,b\n", r"t\.csv:2: the columns are what, else\. Use those of the openb"),
        ("t.csv", "name,cpu_milli,memory_mib,num_gpu,gpu_milli\n", r"t\.csv: no tasks in it"),
        ("t.yaml", "tasks:\n- {devices: 1}\n- {devices: many}\n", r"t\.yaml:3: `devices` is 'many'"),
        ("t.yaml", "tasks:\n- {devices: 1}\n- 7\n", r"t\.yaml:3: is 7\. Write a mapping"),
        ("t.yaml", "tasks:\n- {step_seconds: 3}\n", r"t\.yaml:2: `step_seconds` is 3\. Write a mapping"),
        ("t.yaml", "tasks:\n- {a: [}\n", r"t\.yaml:2: is not YAML"),
        ("t.yaml", "jobs: []\n", r"t\.yaml: has no list under `tasks:`"),
    ],
)
def test_a_malformed_row_is_named_with_line_field_and_remedy(
    name: str, text: str, message: str, openb: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    path = openb[0].parent / name
    path.write_text(text)
    with pytest.raises(BadFile, match=message):
        read_jobs(path)
    assert run(["--nodes", str(openb[0]), "--tasks", str(path), "--format", "json"]) == 2
    printed = capsys.readouterr()
    assert printed.out == "" and f"{path}:" in printed.err


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("n.csv", OPENB_NODES + "n0,1000,1000,2,T4\n", r"two nodes named 'n0'"),
        ("n.csv", OPENB_NODES + "n9,1000,1000,2,\n", r"n\.csv:10: `model` is missing"),
        ("n.csv", "a,b\n1,2\n", r"n\.csv:2: the columns are a, b"),
        ("n.csv", "name,kind,devices\na,T4,2\n", r"n\.csv:2: `device_gib` is missing"),
        ("n.yaml", "nodes:\n- {name: a, devices: 3}\n", r"n\.yaml:2: `devices` is 3\. Write a list"),
        (
            "n.yaml",
            "nodes:\n- name: a\n  devices: [{kind: T4, memory_gib: big}]\n",
            r"n\.yaml:2: `memory_gib` is 'big'",
        ),
        ("n.yaml", "fleet: f\nnodes:\n- {name: a, site: s, devices: [{kind: nonsense}]}\n", r"n\.yaml:3"),
    ],
)
def test_a_malformed_fleet_is_named_with_line_field_and_remedy(
    name: str, text: str, message: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(BadFile, match=message):
        read_nodes(path)


def test_columns_may_come_in_any_order_with_others_between_and_optional_ones_missing(
    openb: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """As spreadsheets and data frames write them: a mark of the encoding, CRLF, numbers of columns with gaps as 8.0."""

    def rewritten(text: str, order: list[str]) -> bytes:
        header, *rows = (line.split(",") for line in text.splitlines())
        lines = [",".join((*order, "notes"))]
        for row in rows:
            cells = dict(zip(header, row, strict=True))
            cells |= {k: f"{v}.0" for k, v in cells.items() if k == "cpu_milli"}
            lines.append(",".join((*(cells[name] for name in order), '"odd, but ignored"')))
        return "\r\n".join([*lines, ""]).encode("utf-8-sig")

    folder = openb[0].parent
    nodes, pods = folder / "other-nodes.CSV", folder / "other-pods.csv"
    nodes.write_bytes(rewritten(OPENB_NODES, ["model", "gpu", "memory_mib", "sn", "cpu_milli"]))
    pods.write_bytes(rewritten(OPENB_PODS, ["gpu_milli", "num_gpu", "cpu_milli", "name", "memory_mib"]))
    assert read_nodes(nodes) == read_nodes(openb[0])
    assert [(j.demand.task_id, j.demand.cpu_milli) for j in read_jobs(pods)] == [
        (j.demand.task_id, j.demand.cpu_milli) for j in read_jobs(openb[1])
    ]
    assert run(["--nodes", str(nodes), "--tasks", str(pods), "--seeds", "42-43", "--format", "json"]) == 0
    printed = capsys.readouterr()
    assert set(json.loads(printed.out)["policies"]) == set(POLICY_NAMES)
    assert "100 %" in printed.err


def test_a_fleet_in_csv_is_the_same_as_in_yaml(own: tuple[Path, Path]) -> None:
    path = own[0].with_suffix(".csv")
    path.write_text(
        "site,name,cpus,memory_gib,kind,devices,device_gib,domestic\n"
        "lab,a,32,128,A100,2,40,\nlab,r,16,64,RTX 3090,1,24,no\n"
    )
    assert read_nodes(path) == read_nodes(own[0])


def test_the_fleet_that_oarlock_up_takes_can_be_planned_with() -> None:
    nodes = read_nodes(Path(__file__).parents[2] / "deploy" / "fleets" / "seed.yaml")
    devices = [device.model for node in nodes for device in node.devices]
    assert len(devices) == 24 and any(model.domestic for model in devices) and all(m.memory_bytes for m in devices)


def test_what_if_two_nodes_more(own: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    base = [
        "--nodes",
        str(own[0]),
        "--tasks",
        str(own[1]),
        "--seeds",
        "1",
        "--policy",
        "rule_based",
        "--format",
        "json",
    ]

    def wait(*more: str) -> float:
        assert run(["--experiment", "arrivals", *base, *more]) == 0
        return float(json.loads(capsys.readouterr().out)["policies"]["rule_based"]["wait_mean_seconds"])

    assert wait("--add-nodes", "r=1") == 10.0 < wait() == 30.0
    assert wait("--add-nodes", "r=1", "--add-nodes", "a=1") == 0.0
    assert run([*base, "--add-nodes", "z=1"]) == 2 and "no node 'z'" in capsys.readouterr().err
    assert run([*base, "--add-nodes", "r"]) == 2 and "NAME=COUNT" in capsys.readouterr().err


def test_what_if_domestic_devices_came_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nodes, tasks = tmp_path / "n.csv", tmp_path / "t.yaml"
    nodes.write_text("name,kind,devices,device_gib,price_per_hour,domestic\na,A10,2,24,1,no\nd,MLU370,2,24,1,yes\n")
    tasks.write_text("tasks: [{device_gib: 8, duration_seconds: 60, step_seconds: {A10: 0.1, MLU370: 0.3}}]\n")
    used: dict[str, str] = {}
    for name in ("balanced", "domestic"):
        arguments = ["--experiment", "arrivals", "--nodes", str(nodes), "--tasks", str(tasks), "--seeds", "1"]
        assert run([*arguments, "--policy", "rule_based", "--preset", name, "--format", "json"]) == 0
        busy = json.loads(capsys.readouterr().out)["policies"]["rule_based"]["utilisation_percent_by_kind"]
        used[name] = max(busy, key=busy.__getitem__)
    assert used == {"balanced": "A10", "domestic": "MLU370"}


def test_arrivals_without_durations_are_refused(openb: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--experiment", "arrivals", "--nodes", str(openb[0]), "--tasks", str(openb[1])]) == 2
    assert "no task says how long it runs" in capsys.readouterr().err


def test_a_look_in_detail_changes_no_decision(openb: tuple[Path, Path]) -> None:
    nodes, jobs = read_nodes(openb[0]), read_jobs(openb[1])
    for policy in ("rule_based", "fgd", "random"):
        plain, closely = fill_run(nodes, jobs, policy, 42), fill_run(nodes, jobs, policy, 42, detail=True)
        assert closely.allocation_percent == plain.allocation_percent
        assert sum(closely.left_out.values()) == closely.arrived - closely.placed
        assert max(closely.fragmentation_percent.values()) > 0.0


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
    assert {path.name for path in folder.iterdir()} == {
        *("allocation.svg", "fragmentation.svg", "waits.svg", "utilisation-first_fit.svg", "utilisation-packing.svg"),
        *("waiting-first_fit.svg", "waiting-packing.svg"),
    }
    named = {
        "allocation.svg": {"first_fit", "packing"},
        "fragmentation.svg": {"first_fit", "packing"},
        "utilisation-first_fit.svg": {"A100", "RTX 3090"},
        "utilisation-packing.svg": {"G2", "T4"},
        "waiting-first_fit.svg": {"anonymous", "busy"},
        "waiting-packing.svg": {"part of a device", "4 devices"},
    }
    for path in folder.iterdir():
        document = ElementTree.parse(path)
        texts = {text.text for text in document.iter("{http://www.w3.org/2000/svg}text")}
        assert named.get(path.name, {"first_fit"}) <= texts
        lines = [line.get("points", "").split() for line in document.iter("{http://www.w3.org/2000/svg}polyline")]
        assert all(len(line) > 20 for line in lines)
        spots = [tuple(map(float, spot.split(","))) for line in lines for spot in line]
        assert all(70 <= x <= 570 and 40 <= y <= 390 for x, y in spots)
    assert capsys.readouterr().err.count("wrote ") == 9


def test_charts_that_cannot_be_written_end_with_2(own: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--experiment", "arrivals", "--nodes", str(own[0]), "--tasks", str(own[1]), "--seeds", "1"]
    assert run([*arguments, "--policy", "first_fit", "--plot", str(own[0])]) == 2
    assert "charts cannot be written" in capsys.readouterr().err


def test_names_in_charts_are_escaped() -> None:
    chart = line_chart("a < b & c", "x", "y", {"<script>": [(0.0, 0.0), (3.0, 7.0)], "empty": []})
    assert ElementTree.fromstring(chart) is not None
    assert "<script>" not in chart
