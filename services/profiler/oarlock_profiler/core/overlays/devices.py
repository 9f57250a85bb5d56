"""Devices and places, and moving tensors between them."""

from __future__ import annotations

from typing import Any

from oarlock_profiler.core.engine.dtypes import canonical
from oarlock_profiler.core.engine.tensor import Tensor
from oarlock_profiler.core.interpreter.values import MISSING, Context, HostObject, Native, Unknown, Value
from oarlock_profiler.core.overlays.calling import DType, dtype_name, engine_of, operator
from oarlock_profiler.core.overlays.registry import register

LIBRARIES = ("torch", "paddle")

ACCELERATORS = frozenset({
    "cuda", "gpu", "npu", "xpu", "mlu", "musa", "hip", "dcu", "gcu", "intel_hpu", "hpu", "mps", "iluvatar_gpu",
    "metax_gpu", "custom", "sdaa", "xla", "tpu", "privateuseone",
})  # fmt: skip


class Device(HostObject):
    """``torch.device`` or a PaddlePaddle place. ``kind`` as the script spells it; ``canonical`` as the engine does."""

    def __init__(self, framework: str, kind: str, index: int | None = None) -> None:
        self.framework = framework
        self.kind = kind
        self.index = index

    @property
    def canonical(self) -> str:
        """``cpu``, ``meta`` or ``gpu:N``."""
        if self.kind in ACCELERATORS:
            return f"gpu:{self.index or 0}"
        return self.kind if self.kind == "meta" else "cpu"

    def __repr__(self) -> str:
        if self.framework == "torch":
            return self.kind if self.index is None else f"{self.kind}:{self.index}"
        return f"Place({self.kind}{'' if self.index is None else f':{self.index}'})"

    def __str__(self) -> str:
        return repr(self)

    def py_type(self) -> str:
        return (
            "torch.device"
            if self.framework == "torch"
            else "paddle.CUDAPlace"
            if self.kind in ACCELERATORS
            else "paddle.CPUPlace"
        )

    def py_getattr(self, context: Context, name: str) -> Value:
        if name == "type":
            return self.kind
        if name == "index":
            return self.index
        if name in ("is_gpu_place", "is_cpu_place"):
            wanted = name == "is_gpu_place"
            return Native(name, lambda c: (self.kind in ACCELERATORS) == wanted)
        if name in ("get_device_id", "gpu_device_id"):
            return Native(name, lambda c: self.index or 0)
        return MISSING

    def py_binary(self, context: Context, op: str, other: Value, reflected: bool) -> Value:
        if op in ("==", "!="):
            same = isinstance(other, (Device, str)) and str(other) == str(self)
            return same if op == "==" else not same
        return MISSING


def parse(context: Context, value: Value, index: Value = None) -> Device | None:
    """The device a script's argument means, or None."""
    if isinstance(value, Device):
        return value
    framework = context.engine.framework
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return Device(framework, "cuda" if framework == "torch" else "gpu", value)
    if isinstance(value, str):
        kind, _, number = value.partition(":")
        known = kind in ACCELERATORS or kind in ("cpu", "meta")
        if not known:
            return None
        at = int(number) if number.isdigit() else index if isinstance(index, int) else None
        return Device(framework, kind, at)
    if isinstance(value, Unknown) and value.hint in ("device", "str", "int"):
        return Device(framework, "cuda" if framework == "torch" else "gpu", 0)
    return None


def place_of(context: Context, value: Value) -> str | None:
    """The engine's name of the device that ``value`` means (None: not given)."""
    device = parse(context, value)
    return device.canonical if device is not None else None


def script_device(context: Context, tensor: Tensor) -> Device:
    """A tensor's device as the script sees it."""
    framework = context.engine.framework
    if tensor.device.startswith("gpu"):
        return Device(framework, "cuda" if framework == "torch" else "gpu", int(tensor.device.partition(":")[2] or 0))
    return Device(framework, tensor.device)


def _make_device(
    context: Context, kind: Value = "cuda", index: Value = None, *, type: Value = None, device: Value = None
) -> Value:
    named = type if type is not None else device
    found = parse(context, kind if named is None else named, index)
    return found if found is not None else Device(context.engine.framework, "cuda", 0)


register("torch.device", Native("torch.device", _make_device))
register("paddle.CPUPlace", Native("paddle.CPUPlace", lambda context: Device("paddle", "cpu")))
register("paddle.CUDAPinnedPlace", Native("paddle.CUDAPinnedPlace", lambda context: Device("paddle", "cpu")))
for _name in ("CUDAPlace", "XPUPlace", "NPUPlace", "MLUPlace", "CustomPlace"):

    def _accelerator_place(context: Context, *args: Value) -> Value:
        index = next((a for a in args if isinstance(a, int)), 0)
        return Device("paddle", "gpu", index)

    for _prefix in ("paddle", "paddle.fluid", "paddle.base.core", "paddle.framework"):
        register(f"{_prefix}.{_name}", Native(f"{_prefix}.{_name}", _accelerator_place))


def moved(context: Context, x: Tensor, device: str | None, dtype: str | None) -> Tensor:
    """``x`` on another device and in another type: itself when nothing changes."""
    engine = engine_of(context)
    if x.shape is None:
        made = engine.unknown_tensor(x.why or "an unknown tensor", dtype or x.dtype)
        made.device = device or x.device
        return made
    if device is not None and device != x.device:
        held = engine.default_device
        made = engine.tensor(
            x.shape,
            dtype or x.dtype,
            kind=x.storage.kind if x.storage is not None and x.storage.kind == "input" else "activation",
            device=device,
            op="copy",
            value=x.value,
        )
        engine.default_device = held
        engine.record("copy", "memcpy_h2d", made.dtype, x.shape, bytes_moved=made.nbytes)
        if x.requires_grad and engine.grad_enabled:
            linked = engine.apply("copy", [x], x.shape, made.dtype, view=made, grad="alias")
            linked.device = device
            return linked
        return made
    if dtype is not None and dtype != x.dtype:
        return engine.cast(x, dtype)
    return x


def move_in_place(context: Context, x: Tensor, device: str | None, dtype: str | None) -> None:
    """Give a parameter or buffer memory on another device or of another type, keeping its identity."""
    engine = engine_of(context)
    if x.shape is None or x.storage is None:
        return
    wanted = dtype or x.dtype
    if (device is None or device == x.device) and wanted == x.dtype:
        return
    made = engine.tensor(x.shape, wanted, kind=x.storage.kind, device=device or x.device, op="to")
    x.storage, x.dtype, x.device = made.storage, wanted, made.device
    if x.grad is not None:
        move_in_place(context, x.grad, device, dtype)


def targets(context: Context, args: Any, kwargs: dict[str, Value]) -> tuple[str | None, str | None]:
    """Device and type among the arguments of ``to``."""
    device = place_of(context, kwargs.get("device", kwargs.get("place")))
    dtype = dtype_name(kwargs.get("dtype"))
    for arg in args:
        if isinstance(arg, Tensor):
            device, dtype = arg.device, arg.dtype
        elif isinstance(arg, DType) or (isinstance(arg, str) and canonical(arg) and parse(context, arg) is None):
            dtype = dtype_name(arg)
        elif arg is not None and not isinstance(arg, bool):
            device = place_of(context, arg) or device
            if device is None:
                dtype = dtype_name(arg) or dtype
    other = kwargs.get("other")
    if isinstance(other, Tensor):
        device, dtype = other.device, other.dtype
    return device, dtype


@operator(["torch.Tensor.to", "paddle.Tensor.to", "paddle.Tensor._to", "paddle.Tensor._copy_to"], rename={"x": "input"})
def to(context: Context, input: Value, *args: Value, **kwargs: Value) -> Value:
    """Another device or type."""
    if not isinstance(input, Tensor):
        return input
    device, dtype = targets(context, args, kwargs)
    return moved(context, input, device, dtype)


@operator(["torch.Tensor.cuda", "paddle.Tensor.cuda", "torch.Tensor.npu", "torch.Tensor.xpu"])
def to_accelerator(context: Context, input: Value, device: Value = None, *args: Value, **kwargs: Value) -> Value:
    """On the accelerator."""
    del args, kwargs
    return moved(context, input, place_of(context, device) or "gpu:0", None)


@operator(["torch.Tensor.cpu", "paddle.Tensor.cpu", "torch.Tensor.pin_memory", "paddle.Tensor.pin_memory"])
def to_host(context: Context, input: Value, *args: Value, **kwargs: Value) -> Value:
    """In host memory."""
    del args, kwargs
    return moved(context, input, "cpu", None)


def set_device(context: Context, device: Value = None) -> Value:
    """Where PaddlePaddle makes tensors from now on."""
    found = parse(context, device)
    if found is not None:
        context.engine.default_device = found.canonical
    elif device is not None:
        context.engine.default_device = "gpu:0"
    context.findings.fact("device", str(device) if isinstance(device, str) else repr(found), context.where)
    return found


for _name in ("paddle.set_device", "paddle.device.set_device", "torch.set_default_device"):
    register(_name, Native(_name, set_device))


def get_device(context: Context) -> Value:
    """The current device's name."""
    return context.engine.default_device


for _name in ("paddle.get_device", "paddle.device.get_device"):
    register(_name, Native(_name, get_device))
