"""Scratch of cuDNN's convolutions on tensor cores.

With tensors in NCHW, cuDNN's tensor-core kernels work on NHWC copies whose channels are padded to a multiple of 16
bytes; the copies of a layer's input ``x``, output ``y`` and weight ``w`` live in the workspace, which PyTorch takes
from its caching allocator for every call. The gradient of the weight also needs room for partial sums where its
product has few tiles, and so often asks for a little more than the gradient of the input has just given back: then the
allocator takes a new segment, and the scratch counts twice. The replay shows both.

Which kernels cuDNN's heuristics choose is not published. :func:`_chosen` is what the peaks of public runs show (961
CNNs of the GPUMemNet campaign, A100, TF32): for each class of layers the forms whose replay comes nearest to the
peaks, found by coordinate descent and kept where most of five folds agree. The same search on four folds leaves 2.1 %
median and 11.4 % p90 on the fifth. Pointwise layers with at most 40 channels on a side, or with a stride and more than
400 channels, take none (MobileNetV2 and ResNet-50 on the same machine).

Layers of more than 400 channels are the weak spot: in about one net of a hundred cuDNN takes gigabytes more there, as
its Fourier transforms of the filters would, and nothing foretells it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from oarlock_profiler.core.engine.trace import Filters, Op

MIB = 1 << 20
ALIGNMENT_BYTES = 16
NARROW_CHANNELS = 42
NARROW_POINTWISE_CHANNELS = 40
WIDE_CHANNELS = 400
FIRST_LAYER_CHANNELS = 112
"""Where the input needs no gradient, layers with at most so many output channels take no scratch."""

SMALL_POSITIONS = 75 * 75
STRIDED_FROM = 1.5
"""Input positions per output position above which a layer has a stride (without one they differ by the padding)."""

MORE_BYTES = 3 * MIB
"""Partial sums beyond the copies; what counts is that they exceed the allocator's rounding."""

PARTIAL_SUMS = 2

_ITEM_BYTES = {"float32": 4, "float16": 2, "bfloat16": 2}


@dataclass(frozen=True, slots=True)
class Convolution:
    """One layer's tensors in bytes, and its filters. ``first`` says that its input needs no gradient."""

    input_bytes: int
    output_bytes: int
    weight_bytes: int
    filters: Filters
    item_bytes: int = 4
    first: bool = False

    @property
    def copies_bytes(self) -> tuple[int, int, int]:
        """The padded copies of input, output and weight."""
        channels, made = self.filters.in_channels, self.filters.out_channels
        padded, more = self._padded(channels), self._padded(made)
        return (
            self.input_bytes * padded // channels,
            self.output_bytes * more // made,
            self.weight_bytes * padded * more // (channels * made),
        )

    @property
    def strided(self) -> bool:
        """Whether the output has fewer positions than the input."""
        steps = self.output_bytes / self.filters.out_channels
        return self.input_bytes / self.filters.in_channels > STRIDED_FROM * steps

    def _padded(self, channels: int) -> int:
        multiple = max(1, ALIGNMENT_BYTES // self.item_bytes)
        return -(-channels // multiple) * multiple


@dataclass(frozen=True, slots=True)
class Scratch:
    """Workspaces of the forward pass and of the two backward kernels, in bytes.

    ``settled`` is False where what cuDNN chooses varies, so that a workspace may count once more or not at all.
    """

    forward: int = 0
    input_gradient: int = 0
    weight_gradient: int = 0
    settled: bool = True


def scratch_of(layer: Convolution) -> Scratch:
    """What cuDNN takes for ``layer``."""
    x, y, w = layer.copies_bytes
    least = min(layer.filters.in_channels, layer.filters.out_channels)
    if layer.first:
        # Its input has few channels; they are not looked at.
        return Scratch() if layer.filters.out_channels <= FIRST_LAYER_CHANNELS else Scratch(x + w, 0, x + y + w)
    if layer.filters.area == 1 and least <= NARROW_POINTWISE_CHANNELS:
        return Scratch()
    return _chosen(layer, x, y, w)


def _chosen(layer: Convolution, x: int, y: int, w: int) -> Scratch:
    """See the module."""
    channels, made, area, _, positions = layer.filters
    copies = x + y + w
    exceeding = copies + MORE_BYTES
    summed = exceeding + PARTIAL_SUMS * w
    if layer.strided:
        if area == 1 and max(channels, made) > WIDE_CHANNELS:
            return Scratch()
        return Scratch(x + w, copies if area > 1 else 0, exceeding)
    if area == 1:
        return Scratch(copies, copies, exceeding)
    if channels <= NARROW_CHANNELS:
        return Scratch(0, 0, copies) if made <= NARROW_CHANNELS else Scratch(x + w, copies, exceeding)
    if made <= NARROW_CHANNELS:
        return Scratch(copies, copies, summed)
    small = positions <= SMALL_POSITIONS
    widening, narrowing = made > 1.02 * channels, made < 0.98 * channels
    if max(channels, made) > WIDE_CHANNELS:
        return Scratch(copies, 0, summed if small and widening else copies, settled=False)
    if small and narrowing:
        return Scratch(copies, 0, copies)
    if widening:
        return Scratch(copies, copies, summed) if small else Scratch(copies, 0, exceeding)
    return Scratch(copies, copies, exceeding)


def layer_of(op: Op, fresh: Sequence[int]) -> Convolution | None:
    """The layer behind a convolution's record and the buffers allocated for it in order; None when they do not fit.

    A forward record moves ``x + y + w`` and the bias; a backward one reads ``y``'s gradient and what was saved of
    ``x`` and ``w``, and writes the gradients in ``fresh``. Floating-point operations are ``2 q`` per value of ``y``
    and gradient, ``q`` being the multiplications behind one value.
    """
    item, filters = _ITEM_BYTES.get(op.dtype), op.filters
    if item is None or filters is None or not fresh:
        return None
    products = filters.in_channels // filters.groups * filters.area
    w = filters.out_channels * products * item
    if w <= 0:
        return None
    backward = op.phase == "backward"
    of_weight = w in fresh[:2]
    of_input = backward and (fresh[0] != w or fresh[1:2] == [w])
    y = op.flops * item // (2 * products * (1 + (of_input and of_weight) if backward else 1))
    x = fresh[0] if of_input else op.bytes_moved - y - w
    if x <= 0 or y <= 0:
        return None
    return Convolution(x, y, w, filters, item, first=backward and not of_input)
