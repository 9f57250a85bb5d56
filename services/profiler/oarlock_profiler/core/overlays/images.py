"""Pictures before they are tensors: size and mode, as PIL and OpenCV hand them on."""

from __future__ import annotations

from collections.abc import Callable

from oarlock_profiler.core.interpreter.slices import same_origin
from oarlock_profiler.core.interpreter.values import MISSING, BoundMethod, Context, HostObject, Native, Unknown, Value
from oarlock_profiler.core.overlays.numpy_arrays import NdArray, new
from oarlock_profiler.core.overlays.numpy_creation import as_array
from oarlock_profiler.core.overlays.registry import entry, native_class, register

LIBRARIES = ("PIL", "cv2", "imageio", "skimage", "matplotlib", "torchvision", "paddle")

CHANNELS = {"RGB": 3, "L": 1, "RGBA": 4, "1": 1, "CMYK": 4, "P": 1, "F": 1, "I": 1, "HSV": 3, "YCbCr": 3, "LA": 2}


class Image(HostObject):
    """A picture of ``height`` × ``width`` (None when unknown; ``short_edge`` is then what a resize made the
    shorter side)."""

    def __init__(self, height: int | None, width: int | None, mode: str = "RGB", short_edge: int | None = None) -> None:
        self.height = height
        self.width = width
        self.mode = mode
        self.short_edge = short_edge

    def py_type(self) -> str:
        return "PIL.Image.Image"

    @property
    def channels(self) -> int:
        """Number of colour planes."""
        return CHANNELS.get(self.mode, 3)

    def size(self, context: Context) -> tuple[int, int] | None:
        """(height, width); a square is assumed, and said, where only the shorter side is known."""
        if self.height is not None and self.width is not None:
            return self.height, self.width
        if self.short_edge is not None:
            edge = self.short_edge
            context.findings.gap("image size", context.where, "only the shorter side is fixed", f"{edge}×{edge}")
            return edge, edge
        return None

    def assumed_shape(self, context: Context) -> tuple[int, ...] | None:
        """Shape as an array, height first."""
        size = self.size(context)
        return None if size is None else (*size, self.channels) if self.channels > 1 else size

    @property
    def array_shape(self) -> tuple[int, ...] | None:
        """Shape as NumPy sees it; None when the size is unknown."""
        height, width = self.height or self.short_edge, self.width or self.short_edge
        if height is None or width is None:
            return None
        return (height, width, self.channels) if self.channels > 1 else (height, width)

    def py_getattr(self, context: Context, name: str) -> Value:
        if name == "size":
            return (self._side(context, self.width), self._side(context, self.height))
        if name in ("width", "height"):
            return self._side(context, getattr(self, name))
        if name == "mode":
            return self.mode
        if name == "format":
            return Unknown("the file's format", context.where, hint="str")
        method = _METHODS.get(name)
        return MISSING if method is None else BoundMethod(method, self)

    def _side(self, context: Context, value: int | None) -> Value:
        return Unknown("the size of an image file", context.where, hint="int", low=1) if value is None else value


def _convert(context: Context, self: Image, mode: Value = "RGB", *args: Value, **options: Value) -> Value:
    return Image(self.height, self.width, mode if isinstance(mode, str) else self.mode, self.short_edge)


def _resize(context: Context, self: Image, size: Value, *args: Value, **options: Value) -> Value:
    if isinstance(size, tuple | list) and len(size) == 2:
        width, height = (n if isinstance(n, int) else None for n in size)
        return Image(height, width, self.mode)
    return Image(None, None, self.mode)


def _crop(context: Context, self: Image, box: Value = None) -> Value:
    if isinstance(box, tuple | list) and len(box) == 4:
        left, top, right, bottom = box
        return Image(_between(top, bottom), _between(left, right), self.mode)
    return Image(None, None, self.mode)


def _between(start: Value, end: Value) -> int | None:
    """How far apart two sides are: known wherever they lie for ``(x, y, x + 192, y + 192)``."""
    if isinstance(start, int | float) and isinstance(end, int | float):
        return int(end) - int(start)
    return same_origin(start, end)


def _same(context: Context, self: Image, *args: Value, **options: Value) -> Value:
    return self


def _nothing(context: Context, *args: Value, **options: Value) -> None:
    return None


def _split(context: Context, self: Image) -> Value:
    return [Image(self.height, self.width, "L") for _ in range(self.channels)]


_BEHAVIOUR: dict[str, Callable[..., Value]] = {
        "convert": _convert, "resize": _resize, "crop": _crop, "copy": _same, "rotate": _same, "transpose": _same,
        "filter": _same, "split": _split, "save": _nothing, "close": _nothing, "thumbnail": _nothing, "show": _nothing,
        "load": _nothing, "paste": _nothing, "__enter__": _same, "__exit__": _nothing,
}  # fmt: skip
_METHODS = {name: Native(f"PIL.Image.Image.{name}", function) for name, function in _BEHAVIOUR.items()}

register("PIL.Image.Image", native_class("PIL.Image.Image"))
for _name in (
    "BILINEAR",
    "BICUBIC",
    "NEAREST",
    "LANCZOS",
    "ANTIALIAS",
    "BOX",
    "HAMMING",
    "FLIP_LEFT_RIGHT",
    "FLIP_TOP_BOTTOM",
):
    register(f"PIL.Image.{_name}", _name)
    register(f"PIL.Image.Resampling.{_name}", _name)


@entry("PIL.Image.open", "paddle.vision.image_load", "torchvision.datasets.folder.default_loader",
       "torchvision.datasets.folder.pil_loader")  # fmt: skip
def open_image(context: Context, *args: Value, **options: Value) -> Value:
    """A file's picture: colour, of unknown size."""
    return Image(None, None)


@entry("PIL.Image.fromarray")
def fromarray(context: Context, obj: Value, mode: Value = None) -> Value:
    """A picture of the array's size."""
    array = as_array(context, obj)
    if array.shape is None or len(array.shape) < 2:
        return Image(None, None, mode if isinstance(mode, str) else "RGB")
    channels = array.shape[2] if len(array.shape) > 2 else 1
    return Image(
        array.shape[0], array.shape[1], mode if isinstance(mode, str) else {1: "L", 4: "RGBA"}.get(channels, "RGB")
    )


@entry("PIL.Image.new")
def new_image(context: Context, mode: Value, size: Value, *args: Value) -> Value:
    """A blank picture."""
    width, height = size if isinstance(size, tuple | list) and len(size) == 2 else (None, None)
    return Image(
        height if isinstance(height, int) else None,
        width if isinstance(width, int) else None,
        mode if isinstance(mode, str) else "RGB",
    )


# --- OpenCV ----------------------------------------------------------------------------------------------------


@entry(
    "cv2.imread", "cv2.imdecode", "imageio.imread", "imageio.v2.imread", "skimage.io.imread", "matplotlib.pyplot.imread"
)
def imread(context: Context, *args: Value, **options: Value) -> Value:
    """Height × width × 3 bytes of unknown size."""
    return NdArray(None, "uint8")


@entry("cv2.resize")
def cv2_resize(context: Context, src: Value, dsize: Value = None, *args: Value, **options: Value) -> Value:
    """``dsize`` is (width, height)."""
    array = as_array(context, src)
    if not isinstance(dsize, tuple | list) or len(dsize) != 2 or not all(isinstance(n, int) for n in dsize):
        return NdArray(None, array.dtype)
    grey = array.shape is not None and len(array.shape) == 2
    tail: tuple[int, ...] = () if grey else (array.shape[2] if array.shape is not None else 3,)
    return new(context, (dsize[1], dsize[0], *tail), array.dtype, op="resize")


@entry("cv2.cvtColor")
def cvt_color(context: Context, src: Value, code: Value = None, *args: Value, **kwargs: Value) -> Value:
    """Grey conversions drop the last axis."""
    array = as_array(context, src)
    if isinstance(code, str) and code.endswith("2GRAY"):
        return array.view(None if array.shape is None else array.shape[:2])
    return array.view(array.shape)


def _same_array(context: Context, src: Value, *args: Value, **options: Value) -> Value:
    array = as_array(context, src)
    return new(context, array.shape, array.dtype, op="cv2")


for _name in ("flip", "GaussianBlur", "medianBlur", "blur", "equalizeHist", "warpAffine", "normalize", "bitwise_not"):
    register(f"cv2.{_name}", Native(f"cv2.{_name}", _same_array))
for _name in ("BGR2RGB", "RGB2BGR", "BGR2GRAY", "RGB2GRAY", "GRAY2RGB", "GRAY2BGR", "BGR2HSV", "BGR2LAB"):
    register(f"cv2.COLOR_{_name}", f"COLOR_{_name}")
for _name in ("INTER_LINEAR", "INTER_CUBIC", "INTER_NEAREST", "INTER_AREA", "INTER_LANCZOS4", "IMREAD_COLOR",
              "IMREAD_GRAYSCALE", "IMREAD_UNCHANGED", "BORDER_CONSTANT", "BORDER_REFLECT_101"):  # fmt: skip
    register(f"cv2.{_name}", _name)
register("cv2.setNumThreads", Native("cv2.setNumThreads", _nothing))
register("cv2.imwrite", Native("cv2.imwrite", _nothing))
register("cv2.ocl.setUseOpenCL", Native("cv2.ocl.setUseOpenCL", _nothing))
