"""PaddlePaddle's static programs: built once on stand-ins without memory, run with the batch that the executor is fed.

While a program is built, every operator is applied to tensors of the ``meta`` device and logged. Unknown batch
dimensions are :data:`STAND_IN`, a prime that no layer has as a size, so that each size that came from the batch can be
told and replaced when :meth:`StaticProgram.run` applies the log to real inputs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from oarlock_profiler.core.engine.dtypes import canonical
from oarlock_profiler.core.engine.engine import Engine
from oarlock_profiler.core.engine.tensor import Tensor
from oarlock_profiler.core.interpreter.values import MISSING, Context, HostObject, Native, Unknown, Value
from oarlock_profiler.core.overlays.numpy_arrays import dtype_name
from oarlock_profiler.core.overlays.optimizers import OptimizerInstance, announce, apply_step
from oarlock_profiler.core.overlays.registry import entry, get, register
from oarlock_profiler.core.overlays.training_notes import Batch, notes
from oarlock_profiler.core.reading import TensorSpec

LIBRARIES = ("paddle",)

STAND_IN = 9973
"""The batch while a program is built."""


class Applied:
    """One logged operator: how it was applied and what it gave."""

    __slots__ = ("args", "kwargs", "outputs")

    def __init__(self, args: Sequence[Any], kwargs: dict[str, Any], outputs: list[Tensor]) -> None:
        self.args = args
        self.kwargs = kwargs
        self.outputs = outputs


class StaticProgram:
    """What was built: placeholders by name, parameters, the log, and what is to be minimised. One per script."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.building = True
        self.inputs: dict[str, Tensor] = {}
        self.parameters: list[Tensor] = []
        self.log: list[Applied] = []
        self.optimizer: OptimizerInstance | None = None
        self.loss: Tensor | None = None
        self.batch = STAND_IN
        self._apply = engine.apply_multi
        self._parameter = engine.parameter

    def begin(self) -> None:
        """Log what is applied and made from now on."""
        engine: Any = self.engine
        engine.grad_enabled = False
        engine.apply_multi = self._logged
        engine.parameter = self._made

    def end(self) -> None:
        """Operators act at once again."""
        engine: Any = self.engine
        engine.grad_enabled = True
        engine.apply_multi, engine.parameter = self._apply, self._parameter
        self.building = False

    def _logged(self, name: str, inputs: Sequence[Tensor], outputs: Any, **options: Any) -> list[Tensor]:
        made = self._apply(name, inputs, outputs, **options)
        self.log.append(Applied((name, list(inputs), outputs), options, made))
        return made

    def _made(self, *args: Any, **kwargs: Any) -> Tensor:
        made = self._parameter(*args, **kwargs)
        self.parameters.append(made)
        return made

    def minimize(self, context: Context, optimizer: OptimizerInstance, loss: Value) -> None:
        """Remember what a run has to learn."""
        self.optimizer = optimizer
        self.loss = loss if isinstance(loss, Tensor) else None
        if not optimizer.parameters():
            optimizer.attrs["param_groups"] = [{"params": list(self.parameters)}]
            announce(context, optimizer)

    def run(self, context: Context, feed: dict[str, Value], *, learn: bool) -> None:
        """One run with ``feed``: forward, and backward and update when the program learns."""
        engine = self.engine
        state: Any = engine
        state.apply_multi, state.parameter = self._apply, self._parameter
        phase, enabled = engine.trace.phase, engine.grad_enabled
        learn = learn and self.optimizer is not None and self.loss is not None
        engine.trace.phase, engine.grad_enabled = "forward", learn
        try:
            self._run(context, feed, learn)
        finally:
            engine.trace.phase, engine.grad_enabled = phase, enabled
            if self.building:
                state.apply_multi, state.parameter = self._logged, self._made

    def _run(self, context: Context, feed: dict[str, Value], learn: bool) -> None:
        engine = self.engine
        self.batch = _fed_batch(feed) or _assumed_batch(context)
        values: dict[int, Tensor] = {}
        specs = []
        for name, stand_in in self.inputs.items():
            given = getattr(feed.get(name), "shape", None)
            shape = given if isinstance(given, tuple) else tuple(self._size(n) for n in stand_in.shape or ())
            values[id(stand_in)] = engine.tensor(
                shape, stand_in.dtype, kind="input", device=engine.default_device, op="feed"
            )
            specs.append(TensorSpec(shape, stand_in.dtype))
        notes(context).batch = Batch(self.batch, specs, None, context.where)
        last_use = self._last_uses()
        for index, applied in enumerate(self.log):
            self._again(applied, values)
            for key in last_use.get(index, ()):
                if self.loss is None or key != id(self.loss):
                    values.pop(key, None)
        if learn and self.loss is not None and self.optimizer is not None:
            loss = values.get(id(self.loss))
            values.clear()
            if loss is not None:
                engine.backward(loss)
            del loss
            apply_step(context, self.optimizer)
            for parameter in self.parameters:
                parameter.grad = None

    def _last_uses(self) -> dict[int, list[int]]:
        """Which values no operator after ``index`` needs: the executor frees them there."""
        last: dict[int, int] = {}
        for index, applied in enumerate(self.log):
            for tensor in [*applied.args[1], *applied.outputs]:
                last[id(tensor)] = index
        dying: dict[int, list[int]] = {}
        for key, index in last.items():
            dying.setdefault(index, []).append(key)
        return dying

    def _again(self, applied: Applied, values: dict[int, Tensor]) -> None:
        name, inputs, outputs = applied.args
        options = {key: self._mapped(value, values) for key, value in applied.kwargs.items()}
        shapes = tuple((tuple(self._size(n) for n in shape), dtype) for shape, dtype in outputs)
        made = self._apply(name, [values.get(id(t), t) for t in inputs], shapes, **options)
        for old, new in zip(applied.outputs, made, strict=False):
            values[id(old)] = new

    def _mapped(self, value: Any, values: dict[int, Tensor]) -> Any:
        if isinstance(value, Tensor):
            return values.get(id(value), value)
        if isinstance(value, int) and not isinstance(value, bool):
            return self._size(value)
        if type(value) in (list, tuple):
            return type(value)(self._mapped(item, values) for item in value)
        return value

    def _size(self, n: int) -> int:
        return n // STAND_IN * self.batch if n and n % STAND_IN == 0 else n


def _fed_batch(feed: dict[str, Value]) -> int | None:
    for value in feed.values():
        shape = getattr(value, "shape", None)
        if isinstance(shape, tuple) and shape:
            return int(shape[0])
    return None


def _assumed_batch(context: Context) -> int:
    declared = context.state.get("declared", {}).get("batch_size_per_gpu")
    assumed = declared if isinstance(declared, int) and declared > 0 else 32
    context.findings.gap("batch size", context.where, "what the executor is fed is not known", assumed)
    return assumed


def program(context: Context) -> StaticProgram:
    """The script's program, begun when it is first needed."""
    found = context.state.get("static")
    if found is None:
        found = context.state["static"] = StaticProgram(context.engine)
        found.begin()
    return found


class ProgramHandle(HostObject):
    """``paddle.static.Program``: all handles stand for the one program; a clone for tests does not learn."""

    def __init__(self, learns: bool = True) -> None:
        self.learns = learns

    def py_type(self) -> str:
        return "paddle.static.Program"

    def py_getattr(self, context: Context, name: str) -> Value:
        if name == "clone":
            return Native(
                name, lambda inner, for_test=False: ProgramHandle(learns=for_test is not True and self.learns)
            )
        if name in ("__enter__", "global_block", "with_data_parallel", "block"):
            return Native(name, lambda inner, *args, **kwargs: self)
        if name == "__exit__":
            return Native(name, lambda inner, *args: False)
        if name == "all_parameters":
            return Native(name, lambda inner: list(program(inner).parameters))
        if name in ("random_seed", "_optimized"):
            return 0
        return MISSING

    def py_setattr(self, context: Context, name: str, value: Value) -> bool:
        return True


class Executor(HostObject):
    """``paddle.static.Executor``."""

    def py_type(self) -> str:
        return "paddle.static.Executor"

    def py_getattr(self, context: Context, name: str) -> Value:
        if name == "run":
            return Native("paddle.static.Executor.run", _run)
        if name in ("close", "train_from_dataset"):
            return Native(name, lambda inner, *args, **kwargs: None)
        return MISSING


def _run(
    context: Context, prog: Value = None, feed: Value = None, fetch_list: Value = None, *args: Value, **kwargs: Value
) -> Value:
    """Without inputs to feed it is the start-up program: parameters are there already."""
    prog = kwargs.get("program", prog)
    found = context.state.get("static")
    fetched = len(fetch_list) if isinstance(fetch_list, list | tuple) else 0
    if found is not None and (feed or (fetched and not found.inputs)):
        if isinstance(feed, list):
            feed = feed[0] if feed else {}
        learns = prog.learns if isinstance(prog, ProgramHandle) else True
        found.run(context, feed if isinstance(feed, dict) else {}, learn=learns)
    return [Unknown("a fetched value", context.where, hint="array") for _ in range(fetched)]


@entry("paddle.enable_static")
def enable_static(context: Context) -> None:
    """Programs are built from now on."""
    program(context)


@entry("paddle.disable_static")
def disable_static(context: Context, *args: Value) -> None:
    """Operators act at once again."""
    found = context.state.get("static")
    if found is not None:
        found.end()


@entry("paddle.static.data", "paddle.fluid.data", "paddle.fluid.layers.data")
def data(
    context: Context, name: Value, shape: Value = (), dtype: Value = "float32", *args: Value, **kwargs: Value
) -> Value:
    """A placeholder; an unknown first size is the batch, other unknown sizes are assumed."""
    found = program(context)
    sizes: list[int] = []
    for place, size in enumerate(shape if isinstance(shape, list | tuple) else ()):
        if isinstance(size, int) and size >= 0:
            sizes.append(size)
        elif place == 0:
            sizes.append(STAND_IN)
        else:
            context.findings.gap("size of an input", context.where, "the program leaves it open", 64)
            sizes.append(64)
    kind = canonical(dtype) if isinstance(dtype, str) else dtype_name(dtype)
    made = context.engine.tensor(tuple(sizes), kind or "float32", kind="input", device="meta", op="data")
    found.inputs[str(name)] = made
    return made


def _same_program(context: Context, prog: Value = None, *args: Value, **kwargs: Value) -> Value:
    program(context)
    return prog if isinstance(prog, ProgramHandle) else ProgramHandle()


for _owner in ("paddle.static", "paddle.fluid", "paddle.base"):
    for _name in ("Program", "default_main_program", "default_startup_program", "CompiledProgram", "program_guard"):
        register(f"{_owner}.{_name}", Native(f"{_owner}.{_name}", _same_program))
    register(f"{_owner}.Executor", Native(f"{_owner}.Executor", lambda context, *args, **kwargs: Executor()))


# --- layers that make their own parameters ---------------------------------------------------------------------


def _functional(context: Context, name: str, *args: Value, **kwargs: Value) -> Value:
    return context.call(get(f"paddle.nn.functional.{name}"), args, kwargs)


def _activated(context: Context, value: Value, act: Value) -> Value:
    return _functional(context, act, value) if isinstance(act, str) else value


def _fc(
    context: Context,
    x: Value = None,
    size: Value = 1,
    num_flatten_dims: Value = 1,
    weight_attr: Value = None,
    bias_attr: Value = None,
    activation: Value = None,
    **more: Value,
) -> Value:
    x = more.get("input", x)
    if not isinstance(x, Tensor) or x.shape is None or not isinstance(size, int):
        return context.unknown("static.nn.fc of an unknown tensor", hint="tensor")
    axis = num_flatten_dims if isinstance(num_flatten_dims, int) and num_flatten_dims > 0 else len(x.shape) - 1
    width = math.prod(x.shape[axis:])
    if len(x.shape) > axis + 1:
        x = context.call(get("paddle.reshape"), (x, [*x.shape[:axis], width]))
    weight = context.engine.parameter((width, size))
    bias = None if bias_attr is False else context.engine.parameter((size,))
    return _activated(context, _functional(context, "linear", x, weight, bias), more.get("act", activation))


def _conv2d(
    context: Context,
    input: Value = None,
    num_filters: Value = 1,
    filter_size: Value = 3,
    stride: Value = 1,
    padding: Value = 0,
    dilation: Value = 1,
    groups: Value = None,
    param_attr: Value = None,
    bias_attr: Value = None,
    use_cudnn: Value = True,
    act: Value = None,
    **more: Value,
) -> Value:
    if not isinstance(input, Tensor) or input.shape is None or not isinstance(num_filters, int):
        return context.unknown("static.nn.conv2d of an unknown tensor", hint="tensor")
    ways = groups if isinstance(groups, int) and groups else 1
    size = (filter_size, filter_size) if isinstance(filter_size, int) else tuple(filter_size)
    weight = context.engine.parameter((num_filters, input.shape[1] // ways, *size))
    bias = None if bias_attr is False else context.engine.parameter((num_filters,))
    return _activated(
        context, _functional(context, "conv2d", input, weight, bias, stride, padding, dilation, ways), act
    )


def _batch_norm(
    context: Context, input: Value = None, act: Value = None, is_test: Value = False, **more: Value
) -> Value:
    if not isinstance(input, Tensor) or input.shape is None:
        return context.unknown("static.nn.batch_norm of an unknown tensor", hint="tensor")
    channels = (input.shape[1],)
    engine = context.engine
    scale, shift = engine.parameter(channels), engine.parameter(channels)
    mean, variance = engine.parameter(channels, None, False), engine.parameter(channels, None, False)
    made = _functional(context, "batch_norm", input, mean, variance, scale, shift, training=is_test is not True)
    return _activated(context, made, act)


def _embedding(context: Context, input: Value = None, size: Value = (1, 1), *args: Value, **more: Value) -> Value:
    if not isinstance(size, list | tuple) or not all(isinstance(n, int) for n in size):
        return context.unknown("static.nn.embedding of unknown size", hint="tensor")
    return _functional(context, "embedding", input, context.engine.parameter(tuple(size)))


def _layer_norm(
    context: Context, input: Value = None, *args: Value, begin_norm_axis: Value = 1, **more: Value
) -> Value:
    if not isinstance(input, Tensor) or input.shape is None:
        return context.unknown("static.nn.layer_norm of an unknown tensor", hint="tensor")
    sizes = input.shape[begin_norm_axis if isinstance(begin_norm_axis, int) else 1 :]
    weight, bias = context.engine.parameter((math.prod(sizes),)), context.engine.parameter((math.prod(sizes),))
    return _functional(context, "layer_norm", input, list(sizes), weight, bias)


_LAYERS: dict[str, Callable[..., Value]] = {
    "fc": _fc, "conv2d": _conv2d, "batch_norm": _batch_norm, "embedding": _embedding, "layer_norm": _layer_norm,
}  # fmt: skip
for _name, _layer in _LAYERS.items():
    for _owner in ("paddle.static.nn", "paddle.fluid.layers"):
        register(f"{_owner}.{_name}", Native(f"{_owner}.{_name}", _layer))
