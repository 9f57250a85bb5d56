"""How arrays are listed: one line of their own, with counts, and the tasks that are under way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from oarlock_schemas import TaskRecord

_UNDER_WAY = frozenset({"placed", "launching", "running"})


def waits_in_array(record: TaskRecord) -> bool:
    """Whether it is a task of an array that holds no device yet."""
    return record.array_member is not None and record.state not in _UNDER_WAY


def with_counts(record: TaskRecord, records: Sequence[TaskRecord]) -> TaskRecord:
    """An array's record with its tasks counted by state in its name; any other as it is."""
    if record.array is None:
        return record
    counts = Counter(r.state for r in records if r.array_member is not None and r.array_member.of == record.task_id)
    told = ", ".join(f"{count} {state}" for state, count in counts.most_common())
    name = f"{record.name} " if record.name else ""
    return record.model_copy(update={"name": f"{name}[{record.array}]" + (f" {told}" if told else "")})
