"""How portraits, tasks, decisions and fleets look in a terminal. Plain functions from values to rich tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from oarlock.terminal import Terminal
from oarlock_schemas import Advice, Candidate, DeviceReason, ModelNode, Portrait, RunRecord, TaskRecord

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def size(count: int | None) -> str:
    """Bytes for people: ``11.4 GiB``; a dash when unknown."""
    if count is None:
        return "–"
    value, unit = float(count), 0
    while abs(value) >= 1024 and unit < len(_UNITS) - 1:
        value, unit = value / 1024, unit + 1
    return f"{value:.0f} B" if unit == 0 else f"{value:.{2 if value < 10 else 1}f} {_UNITS[unit]}"


def number(count: float | None) -> str:
    """A count with a metric prefix: ``25.6 M``."""
    if count is None:
        return "–"
    for limit, suffix in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(count) >= limit:
            return f"{count / limit:.3g} {suffix}"
    return f"{count:.3g}"


def duration(seconds: float | None) -> str:
    """Seconds for people: ``31.2 ms``, ``4.0 s``, ``2 h 5 min``."""
    if seconds is None:
        return "–"
    if seconds < 1:
        return f"{seconds * 1000:.3g} ms"
    if seconds < 120:
        return f"{seconds:.3g} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"


def place(file: str | None, line: int | None) -> str:
    """``train.py:31``."""
    return "" if file is None else file if line is None else f"{file}:{line}"


def _grid(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, show_header=any(columns), header_style="dim")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def portrait(p: Portrait, *, evidence_limit: int = 24, model_depth: int = 3) -> RenderableType:
    """The whole portrait: summary, memory, time, model, evidence, unknowns, fit and advice."""
    parts: list[RenderableType] = [_summary(p), Text(), _memory(p)]
    if p.compute.step_seconds:
        parts += [Text(), _times(p)]
    if p.model:
        parts += [Text(), *(_tree(root, model_depth) for root in p.model)]
    if p.step:
        parts += [Text(), _step(p)]
    if p.evidence:
        parts += [Text(), _evidence(p, evidence_limit)]
    if p.unknowns:
        parts += [Text(), _unknowns(p)]
    if p.fit:
        parts += [Text(), _fit(p)]
    if p.advice:
        parts += [
            Text(),
            advice(p.advice, "there is room to" if p.fit and p.fit.verdict == "fits" else "what would help"),
        ]
    return Group(*parts)


def _summary(p: Portrait) -> Table:
    table = _grid("", "")
    total, part = p.parameters.total, p.parameters.trainable
    trainable = "" if part in (None, total) else f", {part:,} trainable"
    table.add_row("framework", f"{p.framework or 'unknown'} · {p.kind}" + (f" · {p.family}" if p.family else ""))
    table.add_row("parameters", "unknown" if total is None else f"{total:,}{trainable}")
    inputs = ", ".join(f"{i.dtype}{list(i.shape)}" for i in p.batch.inputs)
    table.add_row("batch", f"{p.batch.size_per_device or 'unknown'} per device" + (f" · {inputs}" if inputs else ""))
    table.add_row("precision", p.precision or "unknown")
    table.add_row("optimizer", p.optimizer or "unknown")
    if p.distributed.strategy:
        table.add_row("distributed", f"{p.distributed.strategy} · devices: {p.distributed.devices or 'as given'}")
    if p.flags:
        table.add_row("flags", ", ".join(p.flags))
    table.add_row("method", f"{p.method} · confidence {p.confidence:.0%}")
    return table


def _memory(p: Portrait) -> Table:
    table = _grid("memory on one device", "")
    for name, value in p.memory.parts.model_dump().items():
        if value:
            table.add_row(f"  {name.removesuffix('_bytes').replace('_', ' ')}", size(value))
    peak = p.memory.peak
    table.add_row("peak allocated by tensors", size(peak.allocated_bytes))
    table.add_row("peak reserved by the allocator", size(peak.reserved_bytes))
    interval = "" if peak.low_bytes is None else f"  ({size(peak.low_bytes)} to {size(peak.high_bytes)})"
    table.add_row("peak on the device", Text(size(peak.device_bytes) + interval, style="bold"))
    table.add_row("to reserve (99 %)", Text(size(peak.reserve_bytes), style="bold"))
    return table


def _times(p: Portrait) -> Table:
    table = _grid("time of one step", "", "")
    rows = sorted(p.compute.step_seconds.items(), key=lambda item: item[1] if item[1] is not None else float("inf"))
    for device, seconds in rows[:8]:
        whole = p.compute.duration_seconds.get(device)
        price = p.compute.price.get(device)
        job = f"whole job {duration(whole)}" if whole else ""
        table.add_row(f"  {device}", duration(seconds), job + (f", price {price:.2f}" if price is not None else ""))
    if p.compute.flops_per_step:
        table.add_row("work", f"{number(p.compute.flops_per_step)}FLOP a step", "")
    return table


def _label(node: ModelNode) -> Text:
    shapes = " → " + ", ".join(str(s) for s in node.output_shapes[:2]) if node.output_shapes else ""
    text = Text(f"{node.path or '(model)'}: {node.type}")
    text.append(f"  {node.parameters:,} params" if node.parameters else "", style="cyan")
    text.append(f"{shapes}", style="green")
    text.append(f"  keeps {size(node.saved_bytes)}" if node.saved_bytes else "", style="magenta")
    text.append(f"  {place(node.file, node.line)}" if node.file else "", style="dim")
    return text


def _tree(root: ModelNode, depth: int) -> Tree:
    tree = Tree(_label(root))

    def grow(branch: Tree, node: ModelNode, left: int) -> None:
        if node.children and not left:
            branch.add(Text(f"… {len(node.children)} below", style="dim"))
            return
        for child, count in _alike(node.children):
            label = _label(child)
            if count > 1:
                label.append(f"  × {count}", style="bold")
            grow(branch.add(label), child, left - 1)

    grow(tree, root, depth)
    return tree


def _alike(children: Sequence[ModelNode]) -> list[tuple[ModelNode, int]]:
    """Children in order, each with how many follow one another that differ in nothing but their names."""
    out: list[tuple[ModelNode, int]] = []
    for child in children:
        if out and _shape_of(out[-1][0]) == _shape_of(child):
            out[-1] = (out[-1][0], out[-1][1] + 1)
        else:
            out.append((child, 1))
    return out


def _shape_of(node: ModelNode) -> tuple[Any, ...]:
    own = (node.type, node.parameters, node.trainable, node.output_shapes, node.saved_bytes, node.flops)
    return (*own, *((child.path.removeprefix(node.path), _shape_of(child)) for child in node.children))


def _step(p: Portrait) -> Table:
    table = _grid("one training step", "where", "launches", "work", "tensors hold")
    for row in p.step:
        work = f"{number(row.flops)}FLOP"
        table.add_row(f"  {row.phase}", place(row.file, row.line), str(row.launches), work, size(row.allocated_bytes))
    return table


def _evidence(p: Portrait, limit: int) -> Table:
    table = _grid("evidence", "", "where", "how")
    for fact in p.evidence[:limit]:
        table.add_row(f"  {fact.fact}", Text(_short(fact.value)), place(fact.file, fact.line), fact.how)
    if len(p.evidence) > limit:
        table.add_row(f"  … {len(p.evidence) - limit} more: --format json", "", "", "")
    return table


def _unknowns(p: Portrait) -> Table:
    table = _grid("unknown", "why", "assumed", "where")
    for gap in p.unknowns[:20]:
        assumed = "–" if gap.assumed is None else _short(gap.assumed)
        table.add_row(f"  {gap.what}", Text(gap.why), Text(assumed), place(gap.file, gap.line))
        if gap.settle:
            table.add_row("", Text(f"→ {gap.settle}", style="cyan"), "", "")
    if len(p.unknowns) > 20:
        table.add_row(f"  … {len(p.unknowns) - 20} more: --format json", "", "", "")
    return table


_VERDICTS = {"fits": "green", "tight": "yellow", "oom": "bold red", "unknown": "dim"}


def _fit(p: Portrait) -> Text:
    if p.fit is None:
        return Text()
    text = Text(f"on {p.fit.device}: ")
    text.append(p.fit.verdict, style=_VERDICTS[p.fit.verdict])
    text.append(f" (needs {size(p.fit.needed_bytes)} of {size(p.fit.free_bytes)})")
    return text


def advice(items: Iterable[Advice], title: str = "what would help") -> Table:
    """What would make it fit, least change first."""
    table = _grid(title, "", "")
    for item in items:
        table.add_row(f"  {item.text}", size(item.reserve_bytes or item.device_bytes), Text(item.text_zh, style="dim"))
    return table


def candidates(items: Sequence[Candidate]) -> Table:
    """The devices a decision chose among, best first, with what each score is made of."""
    table = _grid("candidate", "node", "score", "made of")
    for item in items:
        parts = "  ".join(f"{name} {value:+.2f}" for name, value in item.parts.items())
        table.add_row(f"  {item.kind}", item.node, f"{item.score:.3f}", Text(parts, style="dim"))
    return table


def reasons(items: Iterable[DeviceReason]) -> Table:
    """Why devices were not taken."""
    table = _grid("not taken", "", "")
    for item in items:
        table.add_row(f"  {item.kind or 'any device'} × {item.devices}", item.reason, Text(item.message))
    return table


def tasks(records: Iterable[TaskRecord]) -> Table:
    """``oarlock ps``."""
    table = _grid("task", "name", "state", "device", "predicted", "measured", "owner", "")
    styles = {"succeeded": "green", "failed": "red", "rejected": "red", "running": "cyan", "cancelled": "dim"}
    for r in records:
        state = Text(r.state + (f" ({r.outcome})" if r.outcome and r.outcome != "ok" else ""), styles.get(r.state, ""))
        table.add_row(
            r.task_id,
            r.name or "",
            state,
            r.device_kind or "",
            size(r.predicted_bytes),
            size(r.measured_bytes),
            r.owner,
            "simulated" if r.simulated else "",
        )
    return table


def runs(records: Iterable[RunRecord]) -> Table:
    """``oarlock history``: predicted and measured side by side."""
    table = _grid("task", "device", "outcome", "predicted", "measured", "error", "duration", "")
    for r in records:
        measured = r.measured.peak_process_bytes or r.measured.peak_device_bytes
        error = "–"
        if measured and r.predicted.device_bytes:
            error = f"{r.predicted.device_bytes / measured - 1:+.1%}"
        table.add_row(
            r.task_id,
            r.device_kind,
            r.outcome,
            size(r.predicted.device_bytes),
            size(measured),
            error,
            duration(r.measured.duration_seconds),
            "simulated" if r.simulated else "",
        )
    return table


def fleet(devices: Iterable[Any]) -> Table:
    """``oarlock fleet``: each device with what is used and what is booked."""
    table = _grid("site", "node", "device", "memory", "used", "booked", "price/h", "tasks", "health", "")
    for d in devices:
        s = d.state
        health = "ok" if s.healthy else s.health_reason or "unhealthy"
        table.add_row(
            s.site,
            s.node,
            s.kind,
            size(s.memory_bytes),
            size(s.used_bytes),
            size(d.booked_bytes),
            "–" if s.price_per_hour is None else f"{s.price_per_hour:g}",
            ", ".join(lease.task_id for lease in d.leases.leases),
            Text("cordoned" if s.cordoned else health, style="" if s.healthy and not s.cordoned else "red"),
            "simulated" if s.simulated else "",
        )
    return table


def windows(items: Mapping[str, Any]) -> Table:
    """``oarlock reserve list`` and ``oarlock maintenance list``."""
    table = _grid("name", "owner", "begins", "ends", "devices", "reason")
    for name, w in items.items():
        named = [*w.sites, *w.nodes, *w.kinds, *w.devices]
        what = "everything" if w.everything else ", ".join(named)
        table.add_row(name, w.owner or "–", w.begins_at, w.ends_at, Text(what), Text(w.reason or ""))
    return table


def faults(items: Iterable[Mapping[str, str]]) -> Table:
    """What is wrong with a message, each fault with its path."""
    table = _grid("where", "what")
    for fault in items:
        table.add_row(f"  {fault.get('path', '$')}", Text(fault.get("message", "")))
    return table


def _short(value: object, limit: int = 72) -> str:
    text = str(value)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def console(*, stderr: bool = False) -> Console:
    """A console that keeps tables whole when the output is no terminal, and lets no control character through."""
    return Terminal(stderr=stderr)


def checks(found: Iterable[Any]) -> Table:
    """``oarlock doctor``."""
    table = _grid("", "", "", "")
    for check in found:
        mark = Text("ok", "green") if check.ok else Text("missing", "bold red" if check.required else "yellow")
        table.add_row(check.name, mark, Text(check.found), Text("" if check.ok else check.fix or "", style="dim"))
    return table


def cells(found: Iterable[Mapping[str, Any]]) -> Table:
    """``oarlock calibration show``."""
    table = _grid("cell", "factor", "runs")
    for cell in found:
        table.add_row(str(cell["cell"]), f"{cell['factor']:.3f}", str(cell["runs"]))
    return table
