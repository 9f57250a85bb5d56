"""Detection operators whose result depends on the data, and pictures read as tensors: lengths are not known."""

from __future__ import annotations

from oarlock_profiler.core.engine.tensor import Tensor
from oarlock_profiler.core.interpreter.values import Context, Native, Value
from oarlock_profiler.core.overlays.registry import register

LIBRARIES = ("torchvision", "paddle")


def _indices(context: Context, *args: Value, **kwargs: Value) -> Value:
    """Which boxes are kept: as many as the data decides."""
    return context.engine.unknown_tensor("how many boxes are kept depends on the data", "int64")


def _picture(context: Context, *args: Value, **kwargs: Value) -> Value:
    """A file's picture, channels first."""
    return context.engine.unknown_tensor("an image of unknown size", "uint8")


def _grid(context: Context, tensor: Value = None, nrow: Value = 8, padding: Value = 2, **kwargs: Value) -> Value:
    """Pictures side by side."""
    shape = tensor.shape if isinstance(tensor, Tensor) else None
    if shape is None or len(shape) != 4 or not isinstance(nrow, int) or not isinstance(padding, int):
        return context.engine.unknown_tensor("a grid of pictures")
    columns = max(1, min(nrow, shape[0]))
    rows = -(-shape[0] // columns)
    size = (rows * (shape[2] + padding) + padding, columns * (shape[3] + padding) + padding)
    return context.engine.tensor((max(3, shape[1]), *size), "float32", device=tensor.device, op="make_grid")


def _boxes(context: Context, *args: Value, **kwargs: Value) -> Value:
    """Boxes and scores whose number depends on the configuration."""
    made = context.engine.unknown_tensor("boxes of a detection head")
    return made, context.engine.unknown_tensor("scores of a detection head")


for _name in (
    "torchvision.ops.nms",
    "torchvision.ops.batched_nms",
    "torchvision.ops.boxes.nms",
    "torchvision.ops.boxes.batched_nms",
    "paddle.vision.ops.nms",
    "paddle.vision.ops.matrix_nms",
):
    register(_name, Native(_name, _indices))
for _name in (
    "torchvision.io.decode_image",
    "torchvision.io.read_image",
    "torchvision.io.decode_jpeg",
    "paddle.vision.ops.decode_jpeg",
):
    register(_name, Native(_name, _picture))
for _name in ("paddle.vision.ops.yolo_box", "paddle.vision.ops.prior_box"):
    register(_name, Native(_name, _boxes))
register("torchvision.utils.make_grid", Native("torchvision.utils.make_grid", _grid))
register("torchvision.utils.save_image", Native("torchvision.utils.save_image", lambda context, *args, **kwargs: None))
