"""Reading is tolerant, publishing is strict, and every fault has its path."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from oarlock_schemas import InvalidMessage, TaskProfiled, TaskSubmitted, read, read_yaml

SEED = """
task: {type: training, framework: paddlepaddle, model_name: ernie-gram, sequence_length: 512, batch_size_per_gpu: 16,
       num_gpus_estimate: auto}
resource_policy: {memory_threshold: 0.85, allow_mixed_precision: true, distributed_strategy: ddp,
                  preferred_devices: [A100-SXM4-40GB, V100-32GB, RTX_3090]}
scheduler: {algorithm: rl_based, timeout: 300}
"""


def test_the_seed_task_file_is_accepted_as_it_stands() -> None:
    task, ignored = read(TaskSubmitted, yaml.safe_load(SEED))
    assert ignored == []
    assert task.task.model_name == "ernie-gram"
    assert task.task.num_gpus_estimate == "auto"
    assert task.scheduler.timeout_seconds == 300
    assert task.resource_policy.preferred_devices == ["A100-SXM4-40GB", "V100-32GB", "RTX_3090"]


def test_unknown_fields_are_ignored_and_reported_with_their_paths() -> None:
    task, ignored = read(TaskSubmitted, {"colour": 1, "task": {"framework": "Paddle", "mood": {"deep": 1}}})
    assert sorted(ignored) == ["$.colour", "$.task.mood"]
    assert task.task.framework == "paddlepaddle"


def test_every_fault_is_listed_with_its_json_path() -> None:
    with pytest.raises(InvalidMessage) as caught:
        read(
            TaskSubmitted,
            {"task": {"batch_size_per_gpu": 0}, "mounts": [{"source": "/a"}], "extra": 1, "priority": 101},
        )
    assert {fault.path for fault in caught.value.faults} == {
        "$.task.batch_size_per_gpu",
        "$.mounts[0].target",
        "$.priority",
    }


def test_publishing_is_strict() -> None:
    with pytest.raises(ValidationError):
        TaskProfiled.model_validate({"task_id": "a", "colour": 1})


@pytest.mark.parametrize("task_id", ["a.b", "a b", "a>", "*", "", "x" * 129, "a\n"])
def test_a_task_id_cannot_smuggle_a_subject(task_id: str) -> None:
    with pytest.raises(InvalidMessage):
        read(TaskSubmitted, {"task_id": task_id})


@pytest.mark.parametrize("entry", ["/etc/passwd", "../x.py", "a/../../b.py", "~/x.py", "", "a\0b"])
def test_the_entry_stays_inside_the_bundle(entry: str) -> None:
    with pytest.raises(InvalidMessage) as caught:
        read(TaskSubmitted, {"source": {"inline": "x", "entry": entry}})
    assert caught.value.faults[0].path == "$.source.entry"


def test_only_one_source_is_taken() -> None:
    with pytest.raises(InvalidMessage, match="inline and path"):
        read(TaskSubmitted, {"source": {"inline": "x", "path": "/y"}})


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"\xff\xfe", b"1", b"null", b"[" * 100_000, b" " * 1_000_001])
def test_what_is_no_json_object_is_refused_clearly(body: bytes) -> None:
    with pytest.raises(InvalidMessage) as caught:
        read(TaskSubmitted, body)
    assert caught.value.faults[0].path == "$"


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)
_FIELDS = st.sampled_from([*sorted(TaskSubmitted.model_fields), "timeout", "x"])


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(_FIELDS, _JSON, max_size=6))
def test_any_json_object_is_read_or_refused_with_paths(document: dict[str, Any]) -> None:
    try:
        task, _ = read(TaskSubmitted, json.dumps(document))
    except InvalidMessage as error:
        assert all(fault.path.startswith("$") and fault.message for fault in error.faults)
    else:
        assert read(TaskSubmitted, task.model_dump_json()) == (task, [])


def test_yaml_aliases_are_refused_before_they_expand() -> None:
    bomb = "a: &a [x, x, x, x]\nb: &b [*a, *a, *a, *a]\nc: [*b, *b, *b, *b]\n"
    with pytest.raises(InvalidMessage, match="aliases"):
        read_yaml(bomb)


@pytest.mark.parametrize("text", ["[1]", "a: [", "a: !!python/object:os.system {}", "\0", "- " * 3000 + "x"])
def test_what_is_no_plain_mapping_is_refused(text: str) -> None:
    with pytest.raises(InvalidMessage):
        read_yaml(text)
