"""What would make a task fit a device, each change with its new number, ordered by how little it alters the training.

Numbers come from replaying the very steps that were read under the changed sizes, not from a formula.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from oarlock_profiler.core.devices import DeviceSpec
from oarlock_profiler.core.engine.trace import Trace
from oarlock_profiler.core.family import nodes
from oarlock_profiler.core.fit import Case, largest_batch
from oarlock_profiler.core.memory.whatif import with_batch, with_sizes
from oarlock_profiler.core.reading import ModuleNode, Reading
from oarlock_schemas import Advice

GIB = 1 << 30

HALF_ACTIVATIONS = {"transformer": 0.60, "cnn": 0.52, "mlp": 0.55, "rnn": 0.60}
"""Share of float32 activations that remains under autocast: normalisation, softmax and losses stay in float32
(PyTorch ``autocast_mode.h``, PaddlePaddle ``amp_lists.py``)."""

EIGHT_BIT_STATE = 0.26
"""Bytes of block-wise 8-bit optimiser state over float32 state: 1 of 4, and a float32 scale for each block of 256
(Dettmers et al., "8-bit Optimizers via Block-wise Quantization", ICLR 2022)."""

LORA_SHARE = 0.01
"""Trainable share of a transformer with rank-16 adapters on its attention projections (Hu et al., 2021)."""

MAX_SHARDS = 64


@dataclass(frozen=True, slots=True)
class _Option:
    """A change: its machine name, the rewritten trace, and its two texts with ``{gib}`` for the new number."""

    change: str
    trace: Trace
    text: str
    text_zh: str
    effect: str
    value: object = None
    devices: int = 1


def advise(
    case: Case,
    reading: Reading,
    *,
    family: str | None,
    batch: int | None,
    fleet: Sequence[DeviceSpec] = (),
    allow_mixed_precision: bool = True,
) -> list[Advice]:
    """Changes that make ``case`` fit its device, the gentlest first; then the largest batch, if it is another one.

    When no single change is enough, they are joined in the same order until they are.
    """
    advice = [*_other_device(case, fleet)]
    batch = batch if batch is not None and batch >= 1 else None
    options = list(_options(case, reading, family, batch, allow_mixed_precision))
    fitting = [made for option in options if (made := _number(case, option)) is not None]
    if not fitting:
        fitting = _joined(case, options)
    advice += fitting
    if batch is not None:
        advice += _batch(case, batch)
    return sorted(advice, key=lambda item: _RANK.get(item.change, 99))


_RANK = {
    name: rank
    for rank, name in enumerate(
        ("device", "recompute", "accumulation", "sharding", "amp", "optimizer_8bit", "combined", "batch_size", "lora")
    )
}


def largest_batch_advice(case: Case, batch: int) -> list[Advice]:
    """The largest batch on the case's device, also when the task fits as it is."""
    return _batch(case, batch)


def _options(
    case: Case, reading: Reading, family: str | None, batch: int | None, allow_mixed_precision: bool
) -> Iterable[_Option]:
    share = recompute_share(reading.roots)
    if not reading.recompute and share is not None:
        yield _Option(
            "recompute",
            with_sizes(case.trace, {}, saved_share=share),
            "recompute activations block by block in the backward pass: {gib} GiB",
            "在反向传播时按块重计算激活值：{gib} GiB",
            "same result, about a third more computing",
        )
    if batch is not None:
        steps = _accumulation(case, batch)
        if steps is not None:
            yield _Option(
                "accumulation",
                with_batch(case.trace, -(-batch // steps) / batch),
                f"accumulate gradients over {steps} micro-batches of {-(-batch // steps)}, "
                f"keeping the effective batch of {batch}: {{gib}} GiB",
                f"梯度累积 {steps} 个大小为 {-(-batch // steps)} 的微批次，有效批大小仍为 {batch}：{{gib}} GiB",
                "same gradients except where batch statistics are used (batch normalisation)",
                steps,
            )
    shards = _shards(case)
    if shards is not None:
        yield _Option(
            "sharding",
            _sharded(case.trace, shards),
            f"shard weights, gradients and optimiser states over {shards} devices (ZeRO-3, FSDP): {{gib}} GiB each",
            f"在 {shards} 张卡上切分权重、梯度和优化器状态（ZeRO-3/FSDP，Paddle sharding stage3）：每卡 {{gib}} GiB",
            "same result, more communication",
            shards,
            devices=shards,
        )
    if allow_mixed_precision and reading.precision in {None, "float32"}:
        left = HALF_ACTIVATIONS.get(family or "", 0.6)
        yield _Option(
            "amp",
            with_sizes(case.trace, {"activation": left, "temporary": left}, saved_share=left),
            "turn on automatic mixed precision: about {gib} GiB",
            "开启自动混合精度（AMP）：约 {gib} GiB",
            "numerics in half precision where that is safe; usually faster",
            "bfloat16" if case.device.bf16_supported else "float16",
        )
    if reading.optimizer is not None and not reading.optimizer.eight_bit and reading.optimizer.name.lower() != "sgd":
        yield _Option(
            "optimizer_8bit",
            with_sizes(case.trace, {"optimizer": EIGHT_BIT_STATE}),
            f"use an 8-bit {reading.optimizer.name}: {{gib}} GiB",
            f"改用 8 位 {reading.optimizer.name} 优化器：{{gib}} GiB",
            "optimiser states in 8 bits; results usually the same within noise",
        )
    if family == "transformer":
        yield _Option(
            "lora",
            with_sizes(case.trace, {"gradient": LORA_SHARE, "optimizer": LORA_SHARE}),
            "train low-rank adapters (LoRA) in place of all weights: about {gib} GiB",
            "只训练低秩适配器（LoRA），不更新全部权重：约 {gib} GiB",
            "fine-tuning only: another set of weights is trained",
            16,
        )


def _number(case: Case, option: _Option) -> Advice | None:
    """The advice with its new number, or None when the change alone is not enough."""
    asked = replace(case, devices=option.devices, strategy="zero3") if option.devices > 1 else case
    need = asked.device_bytes(option.trace)
    if need is None or need * case.reserve_ratio > case.device.capacity_bytes:
        return None
    return _advice(case, option, need)


def _advice(case: Case, option: _Option, need: int) -> Advice:
    gib = f"{need / GIB:.2f}"
    return Advice(
        change=option.change,
        device_bytes=need,
        reserve_bytes=round(need * case.reserve_ratio),
        value=option.value,
        text=option.text.replace("{gib}", gib),
        text_zh=option.text_zh.replace("{gib}", gib),
        effect=option.effect,
    )


def _joined(case: Case, options: list[_Option]) -> list[Advice]:
    """Recompute, mixed precision and an 8-bit optimiser together, as many as it takes."""
    by_name = {option.change: option for option in options}
    trace, names = case.trace, []
    for name in ("recompute", "amp", "optimizer_8bit"):
        if name not in by_name:
            continue
        names.append(name)
        trace = _apply(trace, name, by_name[name], case)
        need = case.device_bytes(trace)
        if len(names) > 1 and need is not None and need * case.reserve_ratio <= case.device.capacity_bytes:
            text = " + ".join(names)
            joined = _Option(
                "combined",
                trace,
                f"{text} together: about {{gib}} GiB",
                f"同时使用 {text}：约 {{gib}} GiB",
                "each as said of it alone",
                names,
            )
            return [_advice(case, joined, need)]
    return []


def _apply(trace: Trace, name: str, option: _Option, case: Case) -> Trace:
    """``trace`` with one more change, taken from how ``option`` changed the case's own trace."""
    if trace is case.trace:
        return option.trace
    left = HALF_ACTIVATIONS["transformer"]
    if name == "amp":
        return with_sizes(trace, {"activation": left, "temporary": left}, saved_share=left)
    return with_sizes(trace, {"optimizer": EIGHT_BIT_STATE})


def _batch(case: Case, batch: int) -> list[Advice]:
    largest = largest_batch(case, batch)
    if largest is None or largest == batch:
        return []
    option = _Option(
        "batch_size",
        with_batch(case.trace, largest / batch),
        f"{'reduce' if largest < batch else 'raise'} the batch to {largest} (now {batch}): {{gib}} GiB",
        f"将批大小{'减小' if largest < batch else '增大'}到 {largest}（现为 {batch}）：{{gib}} GiB",
        "another effective batch: the learning rate may need to follow",
        largest,
    )
    need = case.device_bytes(option.trace)
    return [] if need is None else [_advice(case, option, need)]


def _other_device(case: Case, fleet: Sequence[DeviceSpec]) -> list[Advice]:
    """The smallest kind of the fleet that would do; else how large a device must be."""
    own = case.device_bytes()
    if own is None:
        return []
    larger = sorted((spec for spec in fleet if not spec.is_host), key=lambda spec: spec.capacity_bytes)
    for spec in larger:
        if spec.name == case.device.name:
            continue
        need = replace(case, device=spec).device_bytes()
        if need is not None and need * case.reserve_ratio <= spec.capacity_bytes:
            gib = f"{need / GIB:.2f}"
            return [
                Advice(
                    change="device",
                    device_bytes=need,
                    reserve_bytes=round(need * case.reserve_ratio),
                    value=spec.name,
                    text=f"use a device that holds it; the smallest in the fleet is {spec.name}: {gib} GiB",
                    text_zh=f"换用容得下的设备；集群中最小的是 {spec.name}：{gib} GiB",
                    effect="none",
                )
            ]
    need = round(own * case.reserve_ratio)
    least = -(-need // GIB)
    return [
        Advice(
            change="device",
            device_bytes=own,
            reserve_bytes=need,
            value=least,
            text=f"needs a device of at least {least} GiB",
            text_zh=f"需要显存不少于 {least} GiB 的设备",
            effect="none",
        )
    ]


def _accumulation(case: Case, batch: int) -> int | None:
    """The fewest micro-batches (powers of two) that fit."""
    steps = 2
    while steps <= batch:
        need = case.device_bytes(with_batch(case.trace, -(-batch // steps) / batch))
        if need is not None and need * case.reserve_ratio <= case.device.capacity_bytes:
            return steps
        steps *= 2
    return None


def _sharded(trace: Trace, devices: int) -> Trace:
    share = 1 / devices
    return with_sizes(trace, {"parameter": share, "gradient": share, "optimizer": share})


def _shards(case: Case) -> int | None:
    """The fewest devices (powers of two) over which full sharding fits."""
    devices = 2
    while devices <= MAX_SHARDS:
        asked = replace(case, devices=devices, strategy="zero3")
        need = asked.device_bytes(_sharded(case.trace, devices))
        if need is not None and need * case.reserve_ratio <= case.device.capacity_bytes:
            return devices
        devices *= 2
    return None


def recompute_share(roots: Sequence[ModuleNode]) -> float | None:
    """What is left of the kept activations when repeated blocks are recomputed one at a time.

    ``saved_bytes`` of a node holds its children's. Kept then are each block's output and the inside of the one block
    at work. None when the model has no row of at least three blocks of one class.
    """
    total = sum(root.saved_bytes for root in roots)
    saved = outputs = largest = 0
    for node in nodes(roots):
        by_class: dict[str, list[ModuleNode]] = {}
        for child in node.children:
            by_class.setdefault(child.cls, []).append(child)
        for blocks in by_class.values():
            if len(blocks) < 3 or not all(block.children for block in blocks):
                continue
            saved += sum(block.saved_bytes for block in blocks)
            outputs += sum(_output_bytes(block) for block in blocks)
            largest = max(largest, *(block.saved_bytes for block in blocks))
        if saved:
            break  # the outermost row of blocks is the one to recompute
    if not total or not saved:
        return None
    share = (total - saved + outputs + largest) / total
    return share if share < 0.95 else None


def _output_bytes(node: ModuleNode) -> int:
    total = 0
    for shape in node.output_shapes[:1]:
        count = 4
        for size in shape:
            count *= size
        total += count
    return total
