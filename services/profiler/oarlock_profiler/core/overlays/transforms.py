"""Image transforms of torchvision and paddle.vision: what they make of a picture's size, channels and type."""

from __future__ import annotations

from collections.abc import Callable

from oarlock_profiler.core.engine.tensor import Tensor
from oarlock_profiler.core.interpreter.values import Context, Instance, Native, Unknown, Value
from oarlock_profiler.core.overlays.images import Image
from oarlock_profiler.core.overlays.numpy_arrays import NdArray, dtype_name, new
from oarlock_profiler.core.overlays.registry import native_class, register

LIBRARIES = ("torchvision", "paddle")

Apply = Callable[[Context, Value, dict[str, Value]], Value]
OWNERS = ("torchvision.transforms", "torchvision.transforms.v2", "torchvision.transforms.transforms",
          "paddle.vision.transforms", "paddle.vision.transforms.transforms", "paddle.vision")  # fmt: skip


def size_of(context: Context, image: Value) -> tuple[int, int] | None:
    """(height, width) of a picture in any of its forms."""
    if isinstance(image, Image):
        return None if image.height is None or image.width is None else (image.height, image.width)
    if isinstance(image, Tensor) and image.shape is not None and len(image.shape) >= 2:
        return image.shape[-2], image.shape[-1]
    if isinstance(image, NdArray) and image.shape is not None and len(image.shape) >= 2:
        return image.shape[0], image.shape[1]
    return None


def with_size(context: Context, image: Value, size: tuple[int, int] | None) -> Value:
    """The picture in its present form, ``size`` large."""
    if isinstance(image, Image):
        return Image(None, None, image.mode) if size is None else Image(*size, image.mode)
    if isinstance(image, Tensor):
        if size is None:
            return context.engine.unknown_tensor("an image of unknown size", image.dtype)
        lead = image.shape[:-2] if image.shape is not None else (3,)
        return context.engine.tensor((*lead, *size), image.dtype, kind="other", device="cpu", op="transform")
    if isinstance(image, NdArray):
        if size is None:
            return NdArray(None, image.dtype)
        tail: tuple[int, ...] = (3,) if image.shape is None else image.shape[2:]
        return new(context, (*size, *tail), image.dtype, op="transform")
    return Image(None, None) if size is None else Image(*size)


def pair(value: Value) -> tuple[int, int] | None:
    """An int or a pair as (height, width)."""
    if isinstance(value, int):
        return value, value
    if isinstance(value, tuple | list) and value and all(isinstance(n, int | float) for n in value):
        return (int(value[0]), int(value[0])) if len(value) == 1 else (int(value[0]), int(value[1]))
    return None


def _resize(context: Context, image: Value, options: dict[str, Value]) -> Value:
    size = options.get("size", 224)
    if isinstance(size, int) or (isinstance(size, tuple | list) and len(size) == 1):
        edge = size if isinstance(size, int) else size[0]
        have = size_of(context, image)
        if have is None or not isinstance(edge, int):
            if isinstance(image, Image | Unknown):
                mode = image.mode if isinstance(image, Image) else "RGB"
                return Image(None, None, mode, edge if isinstance(edge, int) else None)
            return with_size(context, image, None)
        short = min(have)
        return with_size(context, image, (round(have[0] * edge / short), round(have[1] * edge / short)))
    return with_size(context, image, pair(size))


def _to_size(context: Context, image: Value, options: dict[str, Value]) -> Value:
    size = options.get("size", options.get("output_size"))
    return with_size(context, image, pair(size))


def _pad(context: Context, image: Value, options: dict[str, Value]) -> Value:
    have, padding = size_of(context, image), options.get("padding", 0)
    if have is None:
        return with_size(context, image, None)
    if isinstance(padding, int):
        return with_size(context, image, (have[0] + 2 * padding, have[1] + 2 * padding))
    if isinstance(padding, tuple | list) and len(padding) in (2, 4):
        left, top, right, bottom = padding if len(padding) == 4 else (*padding, *padding)
        return with_size(context, image, (have[0] + top + bottom, have[1] + left + right))
    return with_size(context, image, None)


def to_tensor(context: Context, image: Value, options: dict[str, Value]) -> Value:
    """Channels first, floats between 0 and 1."""
    engine = context.engine
    if isinstance(image, Tensor):
        return image
    if isinstance(image, Image):
        size = image.size(context)
        if size is None:
            return engine.unknown_tensor("an image of unknown size")
        if str(options.get("data_format", "CHW")).upper() == "HWC":
            return engine.tensor((*size, image.channels), "float32", kind="other", device="cpu", op="to_tensor")
        return engine.tensor((image.channels, *size), "float32", kind="other", device="cpu", op="to_tensor")
    if isinstance(image, NdArray):
        if image.shape is None:
            return engine.unknown_tensor("an image of unknown size")
        shape = image.shape
        if len(shape) == 2:
            shape = (1, *shape)
        elif len(shape) == 3:
            shape = (shape[2], shape[0], shape[1])
        # torchvision scales bytes to float32 and leaves other types alone; paddle.vision always gives float32.
        dtype = "float32" if image.dtype == "uint8" or engine.framework == "paddle" else image.dtype
        return engine.tensor(shape, dtype, kind="other", device="cpu", op="to_tensor")
    return engine.unknown_tensor("an image of unknown size")


def _pil_to_tensor(context: Context, image: Value, options: dict[str, Value]) -> Value:
    made = to_tensor(context, image, options)
    if isinstance(made, Tensor) and made.shape is not None:
        return context.engine.tensor(made.shape, "uint8", kind="other", device="cpu", op="pil_to_tensor")
    return made


def _to_pil(context: Context, image: Value, options: dict[str, Value]) -> Value:
    size = size_of(context, image)
    channels = 3
    if isinstance(image, Tensor) and image.shape is not None and len(image.shape) == 3:
        channels = image.shape[0]
    elif isinstance(image, NdArray) and image.shape is not None:
        channels = image.shape[2] if len(image.shape) == 3 else 1
    mode = {1: "L", 4: "RGBA"}.get(channels, "RGB")
    return Image(None, None, mode) if size is None else Image(*size, mode)


def _same(context: Context, image: Value, options: dict[str, Value]) -> Value:
    return image


def _normalize(context: Context, image: Value, options: dict[str, Value]) -> Value:
    """paddle.vision also normalises pictures and arrays, into float32 arrays."""
    if not isinstance(image, Image | NdArray):
        return image
    shape = image.assumed_shape(context) if isinstance(image, Image) else image.shape
    if shape is not None and len(shape) == 2 and str(options.get("data_format", "CHW")).upper() == "CHW":
        # The mean has shape [channels, 1, 1] and broadcasts a grey picture to three dimensions.
        shape = (1, *shape)
    return NdArray(shape, "float32")


def _transpose(context: Context, image: Value, options: dict[str, Value]) -> Value:
    order = options.get("order", (2, 0, 1))
    shape: tuple[int, ...] | None = None
    dtype = "uint8"
    if isinstance(image, Image):
        size = image.size(context)
        shape = None if size is None else (*size, image.channels)
    elif isinstance(image, NdArray):
        shape, dtype = image.shape, image.dtype
        if shape is not None and len(shape) == 2:
            shape = (*shape, 1)
    elif isinstance(image, Tensor):
        shape, dtype = image.shape, image.dtype
    if shape is None or not isinstance(order, tuple | list) or len(order) != len(shape):
        return NdArray(None, dtype)
    return NdArray(tuple(shape[i] for i in order if isinstance(i, int)), dtype)


def _grayscale(context: Context, image: Value, options: dict[str, Value]) -> Value:
    channels = options.get("num_output_channels", 1)
    if isinstance(image, Image):
        return Image(image.height, image.width, "RGB" if channels == 3 else "L", image.short_edge)
    if isinstance(image, Tensor) and image.shape is not None and len(image.shape) >= 3:
        shape = (*image.shape[:-3], channels if isinstance(channels, int) else 1, *image.shape[-2:])
        return context.engine.tensor(shape, image.dtype, kind="other", device="cpu", op="grayscale")
    return image


def _crops(count: int) -> Apply:
    def apply(context: Context, image: Value, options: dict[str, Value]) -> Value:
        return tuple(_to_size(context, image, options) for _ in range(count))

    return apply


def _to_dtype(context: Context, image: Value, options: dict[str, Value]) -> Value:
    dtype = options.get("dtype", "float32")
    name = dtype_name(dtype) or "float32"
    if isinstance(image, Tensor) and image.shape is not None:
        return context.engine.tensor(image.shape, name, kind="other", device="cpu", op="to_dtype")
    return image


# Name: (positional argument names, what it does).
_TRANSFORMS: dict[str, tuple[tuple[str, ...], Apply]] = {
    "Resize": (("size", "interpolation"), _resize),
    "Scale": (("size",), _resize),
    "CenterCrop": (("size",), _to_size),
    "RandomCrop": (("size", "padding"), _to_size),
    "RandomResizedCrop": (("size", "scale", "ratio"), _to_size),
    "RandomSizedCrop": (("size",), _to_size),
    "FiveCrop": (("size",), _crops(5)),
    "TenCrop": (("size",), _crops(10)),
    "Pad": (("padding", "fill", "padding_mode"), _pad),
    "ToTensor": (("data_format",), to_tensor),
    "PILToTensor": ((), _pil_to_tensor),
    "ToImage": ((), _pil_to_tensor),
    "ToPILImage": (("mode",), _to_pil),
    "Normalize": (("mean", "std", "data_format"), _normalize),
    "Transpose": (("order",), _transpose),
    "Permute": (("order",), _transpose),
    "Grayscale": (("num_output_channels",), _grayscale),
    "ConvertImageDtype": (("dtype",), _to_dtype),
    "ToDtype": (("dtype", "scale"), _to_dtype),
}
_UNCHANGED = """
    RandomHorizontalFlip RandomVerticalFlip RandomRotation ColorJitter RandomAffine RandomPerspective
    RandomErasing RandomGrayscale GaussianBlur RandomInvert RandomPosterize RandomSolarize RandomAdjustSharpness
    RandomAutocontrast RandomEqualize AutoAugment RandAugment TrivialAugmentWide AugMix BrightnessTransform
    ContrastTransform SaturationTransform HueTransform ElasticTransform LinearTransformation ToPureTensor
    SanitizeBoundingBoxes Identity MixUp CutMix ClampBoundingBoxes RandomPhotometricDistort RandomZoomOut
    RandomIoUCrop
"""


def _install() -> None:
    unchanged: tuple[tuple[str, ...], Apply] = ((), _same)
    _TRANSFORMS.update(dict.fromkeys(_UNCHANGED.split(), unchanged))
    _FUNCTIONS.update(dict.fromkeys(_UNCHANGED_FUNCTIONS.split(), unchanged))
    for name, (places, apply) in _TRANSFORMS.items():
        cls = native_class(
            f"torchvision.transforms.{name}",
            __init__=_initialiser(places),
            __call__=_caller(apply),
            forward=_caller(apply),
        )
        for owner in OWNERS:
            register(f"{owner}.{name}", cls)
    for name, (call, init) in _COMPOSED.items():
        cls = native_class(f"torchvision.transforms.{name}", __init__=init, __call__=call, forward=call)
        for owner in OWNERS:
            register(f"{owner}.{name}", cls)
    base = native_class("paddle.vision.transforms.BaseTransform", __init__=_initialiser(("keys",)), __call__=_base_call)
    register("paddle.vision.transforms.BaseTransform", base)
    for name, (places, apply) in _FUNCTIONS.items():
        native = Native(f"torchvision.transforms.functional.{name}", _functional(places, apply))
        for owner in ("torchvision.transforms.functional", "torchvision.transforms.v2.functional",
                      "torchvision.transforms._functional_pil", "paddle.vision.transforms.functional",
                      "paddle.vision.transforms", "paddle.vision"):  # fmt: skip
            register(f"{owner}.{name}", native)
    for owner in ("torchvision.transforms", "torchvision.transforms.functional", "torchvision.transforms.v2"):
        for mode in ("BILINEAR", "BICUBIC", "NEAREST", "NEAREST_EXACT", "LANCZOS", "BOX", "HAMMING"):
            register(f"{owner}.InterpolationMode.{mode}", mode.lower())
    for policy in ("IMAGENET", "CIFAR10", "SVHN"):
        register(f"torchvision.transforms.AutoAugmentPolicy.{policy}", policy.lower())


def _initialiser(places: tuple[str, ...]) -> Callable[..., None]:
    def init(context: Context, self: Instance, *args: Value, **kwargs: Value) -> None:
        self.attrs.update(zip(places, args, strict=False))
        self.attrs.update(kwargs)

    return init


def _caller(apply: Apply) -> Callable[..., Value]:
    def call(context: Context, self: Instance, image: Value, *more: Value) -> Value:
        if more:
            return (apply(context, image, self.attrs), *more)
        if isinstance(image, tuple | list) and apply is not _transpose and not isinstance(image, Image):
            return type(image)(apply(context, item, self.attrs) if i == 0 else item for i, item in enumerate(image))
        return apply(context, image, self.attrs)

    return call


def _functional(places: tuple[str, ...], apply: Apply) -> Callable[..., Value]:
    def function(context: Context, img: Value = None, *args: Value, **kwargs: Value) -> Value:
        given = dict(zip(places, args, strict=False)) | kwargs
        source = given.pop("pic", given.pop("inpt", img))
        return apply(context, source, given)

    return function


def _crop_function(context: Context, image: Value, options: dict[str, Value]) -> Value:
    return with_size(context, image, pair((options.get("height"), options.get("width"))))


def _dimensions(context: Context, image: Value, options: dict[str, Value]) -> Value:
    size = size_of(context, image)
    if size is None:
        return [Unknown("the size of an image file", context.where, hint="int")] * 2
    return [size[1], size[0]]


_FUNCTIONS: dict[str, tuple[tuple[str, ...], Apply]] = {
    "resize": (("size", "interpolation"), _resize),
    "center_crop": (("output_size",), _to_size),
    "crop": (("top", "left", "height", "width"), _crop_function),
    "resized_crop": (("top", "left", "height", "width", "size"), _to_size),
    "pad": (("padding", "fill", "padding_mode"), _pad),
    "to_tensor": (("data_format",), to_tensor),
    "pil_to_tensor": ((), _pil_to_tensor),
    "to_pil_image": (("mode",), _to_pil),
    "normalize": (("mean", "std"), _normalize),
    "to_grayscale": (("num_output_channels",), _grayscale),
    "rgb_to_grayscale": (("num_output_channels",), _grayscale),
    "to_dtype": (("dtype", "scale"), _to_dtype),
    "convert_image_dtype": (("dtype",), _to_dtype),
    "get_image_size": ((), _dimensions),
}
_UNCHANGED_FUNCTIONS = """
    hflip vflip rotate affine adjust_brightness adjust_contrast adjust_saturation adjust_hue adjust_gamma
    gaussian_blur invert equalize horizontal_flip perspective erase autocontrast
"""


# --- transforms of transforms ----------------------------------------------------------------------------------


def _compose_init(context: Context, self: Instance, transforms: Value = (), *args: Value, **kwargs: Value) -> None:
    self.attrs["transforms"] = transforms
    self.attrs["p"] = kwargs.get("p", args[0] if args else 0.5)


def _compose(context: Context, self: Instance, image: Value, *more: Value) -> Value:
    for transform in _steps(context, self):
        image = context.call(transform, (image, *more) if more else (image,))
        if more and isinstance(image, tuple | list) and len(image) == 1 + len(more):
            image, *rest = image
            more = tuple(rest)
    return (image, *more) if more else image


def _steps(context: Context, self: Instance) -> list[Value]:
    steps = self.attrs.get("transforms", ())
    return list(steps) if isinstance(steps, list | tuple) else list(context.iterate(steps).items)


def _one_of(context: Context, self: Instance, image: Value, *more: Value) -> Value:
    """One branch at random: the first stands for all (they keep the size alike)."""
    steps = _steps(context, self)
    return context.call(steps[0], (image,)) if steps else image


def _lambda_init(context: Context, self: Instance, lambd: Value, *args: Value) -> None:
    self.attrs["lambd"] = lambd


def _lambda(context: Context, self: Instance, image: Value) -> Value:
    return context.call(self.attrs["lambd"], (image,))


_COMPOSED: dict[str, tuple[Callable[..., Value], Callable[..., None]]] = {
    "Compose": (_compose, _compose_init),
    "RandomApply": (_compose, _compose_init),
    "RandomOrder": (_compose, _compose_init),
    "RandomChoice": (_one_of, _compose_init),
    "Lambda": (_lambda, _lambda_init),
}


def _base_call(context: Context, self: Instance, inputs: Value) -> Value:
    """paddle's base class: a subclass gives ``_apply_image``."""
    own = context.getattr(self, "_apply_image", None)
    if own is None:
        return inputs
    if isinstance(inputs, tuple | list):
        return type(inputs)([context.call(own, (inputs[0],)), *inputs[1:]])
    return context.call(own, (inputs,))


def _is_kind(kind: type) -> Native:
    return Native("_is_image", lambda context, image: isinstance(image, kind))


_install()
for _owner in ("paddle.vision.transforms.functional", "torchvision.transforms.functional"):
    register(f"{_owner}._is_pil_image", _is_kind(Image))
    register(f"{_owner}._is_numpy_image", _is_kind(NdArray))
    register(f"{_owner}._is_tensor_image", _is_kind(Tensor))
for _owner in ("paddle.vision.transforms.transforms", "torchvision.transforms.functional"):
    register(
        f"{_owner}._get_image_size", Native("_get_image_size", lambda context, image: _dimensions(context, image, {}))
    )
