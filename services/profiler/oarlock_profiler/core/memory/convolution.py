"""Scratch of cuDNN's convolutions on tensor cores.

With tensors in NCHW, cuDNN's tensor-core kernels work on NHWC copies whose channels are padded to a multiple of 8; the
copies live in the workspace. What was seen on an A100 with TF32 (public peaks of the GPUMemNet campaign, mostly of nets
in which one convolution sets the peak): the forward pass takes no scratch that shows; each of the two backward passes
takes the padded copies of the layer's input and output, twice over for tensors of 41 to 400 channels. Where the kernel
is 1 × 1 it is up to 200 channels, and nothing with at most 40 on a side (seen on ResNet-50 and MobileNetV2). Layers
with a stride take none that shows (found on the residual nets of two of five folds). Beyond 400 channels the weight is
copied twice. The first layer, whose input needs no gradient, takes one copy of its output above 112 channels. Beyond
about 400 channels what cuDNN chooses varies, and nets of such layers are the estimate's weak spot.

The sizes are worked out from the operator's record and the buffers allocated for it: a backward record moves
``dy + 2 dx + 2 dw`` bytes (gradients made, input and weight read), and its floating-point operations give the
products per output value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from oarlock_profiler.core.engine.trace import Op

CHANNEL_MULTIPLE = 8
DOUBLED_ABOVE_CHANNELS = 40
DOUBLED_UP_TO_CHANNELS = 400
POINTWISE_DOUBLED_UP_TO_CHANNELS = 200
FIRST_LAYER_ABOVE_CHANNELS = 112
STRIDED_FROM = 2
"""Input positions per output position above which a layer has a stride (without one they differ by the padding)."""

_ITEM_BYTES = {"float32": 4, "float16": 2, "bfloat16": 2}


@dataclass(frozen=True, slots=True)
class BackwardConvolution:
    """Sizes of one layer's backward pass, in bytes, and its channels (``in_channels`` None: not known)."""

    input_bytes: int
    output_bytes: int
    weight_bytes: int
    in_channels: int | None
    out_channels: int
    first_layer: bool

    @property
    def scratch_bytes(self) -> int:
        """The workspace that each of the two backward kernels takes."""
        output = _padded(self.output_bytes, self.out_channels)
        if self.first_layer:
            return output if self.out_channels > FIRST_LAYER_ABOVE_CHANNELS else 0
        channels = self.in_channels or self.out_channels
        if self.input_bytes / channels > STRIDED_FROM * self.output_bytes / self.out_channels:
            return 0
        pointwise = self.weight_bytes <= 4 * channels * self.out_channels
        if pointwise and min(channels, self.out_channels) <= DOUBLED_ABOVE_CHANNELS:
            return 0
        limit = POINTWISE_DOUBLED_UP_TO_CHANNELS if pointwise else DOUBLED_UP_TO_CHANNELS
        copies = _copies(channels, limit) * _padded(self.input_bytes, channels)
        wide = not pointwise and max(channels, self.out_channels) > DOUBLED_UP_TO_CHANNELS
        return copies + _copies(self.out_channels, limit) * output + (2 if wide else 1) * self.weight_bytes


def backward_of(op: Op, fresh: Sequence[int]) -> BackwardConvolution | None:
    """The sizes behind a backward record, given the buffers allocated for it in order; None when they do not fit."""
    item = _ITEM_BYTES.get(op.dtype)
    if item is None or not fresh:
        return None
    if len(fresh) >= 2:
        found = _both(op, fresh, item)
        if found is not None:
            return found
    return _weight_only(op, fresh[0], item)


def _both(op: Op, fresh: Sequence[int], item: int) -> BackwardConvolution | None:
    """Gradients of the input and of the weight: ``fresh`` begins with ``dx, dw``."""
    dx, dw = fresh[0], fresh[1]
    dy = op.bytes_moved - 2 * dx - 2 * dw - sum(fresh[2:])
    if dy <= 0:
        return None
    products = _whole(op.flops * item, 4 * dy)
    outputs = _whole(dw, item * products) if products else None
    if not products or not outputs or dy % outputs:
        return None
    return BackwardConvolution(dx, dy, dw, _in_channels(products, dx, dy, outputs), outputs, first_layer=False)


def _weight_only(op: Op, dw: int, item: int) -> BackwardConvolution | None:
    """Only the weight needs a gradient: the record moves ``dy + dw + db + x``."""
    # dw = K q item and flops = 2 (dy / item) q, so that dy K = flops item² … / (2 dw): K divides both.
    area = op.flops * item * item
    if dw <= 0 or area % 2:
        return None
    for products in (27, 147, 9, 49, 75, 3, 1, 25, 363, 12, 48, 768, 192, 588):  # channels 3 or 1 by usual kernels
        outputs = _whole(dw, item * products)
        dy = _whole(op.flops * item, 2 * products)
        if outputs and dy and dy < op.bytes_moved and dy % outputs == 0:
            return BackwardConvolution(op.bytes_moved - dy - dw, dy, dw, None, outputs, first_layer=True)
    return None


def _whole(number: int, divisor: int) -> int | None:
    quotient, rest = divmod(number, divisor) if divisor else (0, 1)
    return quotient if rest == 0 else None


def _in_channels(products: int, dx: int, dy: int, outputs: int) -> int | None:
    """Input channels from ``products = channels per group × kernel area``: where the stride comes out whole.

    With one group, input positions per output position are the stride squared. Otherwise the stride is taken for 1 or
    2 and the channels follow from the sizes.
    """
    best: tuple[float, int] | None = None
    for area in (9, 1, 25, 49, 3, 5, 7, 4, 16, 121, 27):
        channels = _whole(products, area)
        if not channels:
            continue
        stretch = (dx / channels) / (dy / outputs)
        stride = max(1.0, round(stretch**0.5))
        miss = abs(stretch - stride * stride) / (stride * stride)
        if stride <= area**0.5 + 1 and (best is None or miss < best[0] - 1e-9):
            best = (miss, channels)
    if best is not None and best[0] < 0.2:
        return best[1]
    for square in (1, 4):
        total = dx * outputs / (dy * square)
        if abs(total - round(total)) < 0.02 * total and round(total) >= 1:
            return round(total)
    return None


def _padded(nbytes: int, channels: int) -> int:
    return nbytes // channels * (-(-channels // CHANNEL_MULTIPLE) * CHANNEL_MULTIPLE)


def _copies(channels: int, limit: int) -> int:
    return 2 if DOUBLED_ABOVE_CHANNELS < channels <= limit else 1
