"""Recurrent layers and cells.

On a GPU a whole layer stack is one cuDNN call that keeps a reserve space for backward.
"""

from __future__ import annotations

from typing import Any

from oarlock_profiler.core.engine.modules import LayerInstance
from oarlock_profiler.core.engine.shapes import ShapeError
from oarlock_profiler.core.engine.tensor import Tensor
from oarlock_profiler.core.interpreter.values import Context, Instance, Native, Value
from oarlock_profiler.core.overlays.calling import engine_of, integer, operator, tensor
from oarlock_profiler.core.overlays.devices import place_of
from oarlock_profiler.core.overlays.layer_class import demanded, layer
from oarlock_profiler.core.overlays.nn_module import parameter
from oarlock_profiler.core.overlays.registry import native_class, register
from oarlock_profiler.core.overlays.shaping import concat, stack, unbind

LIBRARIES = ("torch", "paddle")

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
RESERVED = {"LSTM": 6.9, "GRU": 4.5, "RNN": 1.75}
"""Values kept a step, layer.

Direction and hidden unit: gates and states between them (read off PaddlePaddle's reserve space).
"""


def _weights(
    context: Context,
    self: LayerInstance,
    mode: str,
    inputs: int,
    hidden: int,
    suffix: str,
    bias: bool,
    proj: int,
    device: str | None,
    attrs: dict[str, Value],
) -> None:
    rows = GATES[mode] * hidden
    self.attrs[f"weight_ih{suffix}"] = parameter(context, (rows, inputs), attrs.get("weight_ih_attr"), None, device)
    self.attrs[f"weight_hh{suffix}"] = parameter(
        context, (rows, proj or hidden), attrs.get("weight_hh_attr"), None, device
    )
    if bias and attrs.get("bias_ih_attr") is not False:
        self.attrs[f"bias_ih{suffix}"] = parameter(context, (rows,), attrs.get("bias_ih_attr"), None, device)
    if bias and attrs.get("bias_hh_attr") is not False:
        self.attrs[f"bias_hh{suffix}"] = parameter(context, (rows,), attrs.get("bias_hh_attr"), None, device)
    if proj:
        self.attrs[f"weight_hr{suffix}"] = parameter(context, (proj, hidden), None, None, device)


def _stack_init(
    context: Context, self: LayerInstance, mode: str, input_size: Value, hidden_size: Value, given: dict[str, Value]
) -> None:
    layers, proj = integer(given.get("num_layers", 1)), integer(given.get("proj_size", 0) or 0)
    direction = given.get("direction", "forward")
    directions = 2 if given.get("bidirectional") is True or direction in ("bidirect", "bidirectional") else 1
    inputs, hidden = integer(input_size), integer(hidden_size)
    batch_first = (
        given.get("batch_first") is True if context.engine.framework == "torch" else given.get("time_major") is not True
    )
    self.attrs.update(
        input_size=inputs,
        hidden_size=hidden,
        num_layers=layers,
        bidirectional=directions == 2,
        batch_first=batch_first,
        num_directions=directions,
        dropout=given.get("dropout", 0.0),
        mode=mode,
        proj_size=proj,
    )
    device = place_of(context, given.get("device"))
    for index in range(layers):
        for way in range(directions):
            width = inputs if index == 0 else (proj or hidden) * directions
            suffix = f"_l{index}{'_reverse' if way else ''}"
            _weights(
                context, self, mode, width, hidden, suffix, given.get("bias", True) is not False, proj, device, given
            )


def _sequence(context: Context, self: LayerInstance, input: Value) -> Tensor:
    return demanded(context, input, (128, self.attrs["input_size"]), "the input of a recurrent layer")


def _stack_forward(context: Context, self: LayerInstance, mode: str, input: Value, states: Value) -> Value:
    engine = engine_of(context)
    attrs = self.attrs
    packed = isinstance(input, PackedSequence)
    x = input.data if packed else _sequence(context, self, input)
    shape = x.shape or ()
    if not shape or shape[-1] != attrs["input_size"]:
        raise ShapeError(f"a recurrent layer for {attrs['input_size']} features given {list(shape)}")
    directions, layers, hidden, proj = (
        attrs["num_directions"],
        attrs["num_layers"],
        attrs["hidden_size"],
        attrs["proj_size"],
    )
    batched = len(shape) == 3
    batch_axis = 0 if attrs["batch_first"] else 1
    batch = shape[batch_axis] if batched else 1
    steps = shape[1 - batch_axis] if batched else shape[0]
    width = (proj or hidden) * directions
    weights = [p for _, p in self.own_parameters()]
    initial = [t for t in (states if isinstance(states, (list, tuple)) else [states]) if isinstance(t, Tensor)]
    rows = batch * steps
    flops = backward_flops = 0
    for index in range(layers):
        inner = shape[-1] if index == 0 else width
        gates = 2 * rows * directions * GATES[mode] * hidden
        flops += gates * (inner + (proj or hidden))
        # weights' gradients cost as much as forward; so do the inputs', but nobody asks for those of the data
        backward_flops += gates * (inner + (proj or hidden)) + gates * (
            (proj or hidden) + (inner if index or x.requires_grad else 0)
        )
    reserve = int(4 * rows * layers * directions * hidden * RESERVED[mode])
    state = (layers * directions, batch, proj or hidden) if batched else (layers * directions, proj or hidden)
    outputs: list[tuple[tuple[int, ...], Any]] = [((*shape[:-1], width), x.dtype), (state, x.dtype)]
    if mode == "LSTM":
        outputs.append(((*state[:-1], hidden), x.dtype))
    made = engine.apply_multi(
        mode.lower(), [x, *weights, *initial], outputs, saved=[x, ("output", 0), reserve, *initial], flops=flops,
        backward_flops=backward_flops, matmul=True, kernel="rnn",
    )  # fmt: skip
    out: Value = PackedSequence(made[0], input.lengths) if packed else made[0]
    return (out, (made[1], made[2])) if mode == "LSTM" else (out, made[1])


def _define_stack(mode: str) -> None:
    def torch_init(
        context: Context, self: LayerInstance, input_size: Value, hidden_size: Value, *args: Value, **kwargs: Value
    ) -> None:
        order = (
            ("num_layers", "nonlinearity", "bias", "batch_first", "dropout", "bidirectional")
            if mode == "RNN"
            else ("num_layers", "bias", "batch_first", "dropout", "bidirectional", "proj_size")
        )
        _stack_init(context, self, mode, input_size, hidden_size, {**dict(zip(order, args, strict=False)), **kwargs})

    def paddle_init(
        context: Context, self: LayerInstance, input_size: Value, hidden_size: Value, *args: Value, **kwargs: Value
    ) -> None:
        order = (
            ("num_layers", "direction", "time_major", "dropout", "activation")
            if mode == "RNN"
            else ("num_layers", "direction", "time_major", "dropout")
        )
        _stack_init(context, self, mode, input_size, hidden_size, {**dict(zip(order, args, strict=False)), **kwargs})

    def forward(
        context: Context,
        self: LayerInstance,
        input: Value,
        states: Value = None,
        sequence_length: Value = None,
        **kwargs: Value,
    ) -> Value:
        del sequence_length
        given = next((kwargs[k] for k in ("hx", "initial_states") if k in kwargs), states)
        return _stack_forward(context, self, mode, input, given)

    layer("torch", mode, torch_init, forward).namespace["flatten_parameters"] = Native(
        "flatten_parameters", lambda context, self: None
    )
    cls = layer("paddle", "SimpleRNN" if mode == "RNN" else mode, paddle_init, forward)
    cls.namespace["flatten_parameters"] = Native("flatten_parameters", lambda context, self: None)


for _mode in GATES:
    _define_stack(_mode)


# --- cells
# -------------------------------------------------------------------------------------------------------------
def _define_cell(mode: str) -> None:
    def init(
        context: Context, self: LayerInstance, input_size: Value, hidden_size: Value, *args: Value, **kwargs: Value
    ) -> None:
        bias = args[0] if args and isinstance(args[0], bool) else kwargs.get("bias", True)
        self.attrs.update(input_size=integer(input_size), hidden_size=integer(hidden_size))
        _weights(
            context,
            self,
            mode,
            integer(input_size),
            integer(hidden_size),
            "",
            bias is not False,
            0,
            place_of(context, kwargs.get("device")),
            kwargs,
        )

    def forward(context: Context, self: LayerInstance, input: Value, states: Value = None, **kwargs: Value) -> Value:
        engine = engine_of(context)
        x = demanded(context, input, (self.attrs["input_size"],), "the input of a recurrent cell")
        hidden = self.attrs["hidden_size"]
        shape = (*(x.shape or ())[:-1], hidden)
        given = kwargs.get("hx", states)
        held = [t for t in (given if isinstance(given, (list, tuple)) else [given]) if isinstance(t, Tensor)]
        rows = 1
        for size in shape[:-1]:
            rows *= size
        width = self.attrs["input_size"]
        flops = 2 * rows * GATES[mode] * hidden * (width + hidden)
        asked = (width if x.requires_grad else 0) + (hidden if any(t.requires_grad for t in held) else 0)
        backward_flops = flops + 2 * rows * GATES[mode] * hidden * asked
        count = 2 if mode == "LSTM" else 1
        gates = 4 * rows * hidden * (GATES[mode] + (2 if mode == "GRU" else 0))
        saved: list[Any] = [x, *held, gates, *(("output", i) for i in range(count))]
        weights = [p for _, p in self.own_parameters()]
        made = engine.apply_multi(
            f"{mode.lower()}_cell", [x, *weights, *held], [(shape, x.dtype)] * count, saved=saved, flops=flops,
            backward_flops=backward_flops, matmul=True, kernel="rnn",
        )  # fmt: skip
        if engine.framework == "paddle":
            return (made[0], (made[0], made[1])) if mode == "LSTM" else (made[0], made[0])
        return tuple(made) if mode == "LSTM" else made[0]

    layer("torch", f"{mode}Cell", init, forward)
    layer("paddle", "SimpleRNNCell" if mode == "RNN" else f"{mode}Cell", init, forward)


for _mode in GATES:
    _define_cell(_mode)


def _unrolled_init(
    context: Context, self: LayerInstance, cell: Value, second: Value = None, *args: Value, **kwargs: Value
) -> None:
    del context
    self.attrs["cell" if not isinstance(second, LayerInstance) else "cell_fw"] = cell
    if isinstance(second, LayerInstance):
        self.attrs["cell_bw"] = second
    self.config["time_major"] = kwargs.get("time_major", args[0] if args else False)


def _unrolled_forward(
    context: Context, self: LayerInstance, inputs: Value, initial_states: Value = None, *args: Value, **kwargs: Value
) -> Value:
    """PaddlePaddle's ``RNN(cell)``: the cell step by step; sized as its steps."""
    del args, kwargs
    x = tensor(context, inputs)
    axis = 0 if self.config["time_major"] is True else 1
    steps = (x.shape or (1, 1))[axis]
    pieces = unbind(context, x, axis)
    finals: list[Value] = []
    results: list[Tensor] = []
    for _, cell in self.children():
        state, outputs = initial_states, []
        for index in range(steps):
            out, state = context.call(cell, (pieces[index], state))
            outputs.append(out)
        results.append(stack(context, outputs, axis))
        finals.append(state)
    if len(results) == 1:
        return (results[0], finals[0])
    return (concat(context, results, -1), tuple(finals))


layer("paddle", "RNN", _unrolled_init, _unrolled_forward)
layer("paddle", "BiRNN", _unrolled_init, _unrolled_forward)


# --- variable lengths
# --------------------------------------------------------------------------------------------------
_PACKED = native_class("torch.nn.utils.rnn.PackedSequence")


class PackedSequence(Instance):
    """``pack_padded_sequence``: the padded data stand for the packed ones (the largest they can be)."""

    def __init__(self, data: Tensor, lengths: Value) -> None:
        super().__init__(
            _PACKED, {"data": data, "batch_sizes": lengths, "sorted_indices": None, "unsorted_indices": None}
        )
        self.data = data
        self.lengths = lengths


def _pack(
    context: Context, input: Value, lengths: Value = None, batch_first: Value = False, *args: Value, **kwargs: Value
) -> Value:
    del args, kwargs, batch_first
    return (
        PackedSequence(tensor(context, input), lengths)
        if isinstance(input, Tensor) and input.shape is not None
        else input
    )


def _unpack(context: Context, sequence: Value, batch_first: Value = False, *args: Value, **kwargs: Value) -> Value:
    del args, kwargs, batch_first
    data = sequence.data if isinstance(sequence, PackedSequence) else sequence
    lengths = sequence.lengths if isinstance(sequence, PackedSequence) else None
    return (data, lengths if lengths is not None else context.unknown("the lengths of a packed sequence"))


register("torch.nn.utils.rnn.pack_padded_sequence", Native("pack_padded_sequence", _pack))
register("torch.nn.utils.rnn.pad_packed_sequence", Native("pad_packed_sequence", _unpack))
register("torch.nn.utils.rnn.PackedSequence", _PACKED)


@operator(["torch.nn.utils.rnn.pad_sequence"], rename={})
def pad_sequence(
    context: Context, sequences: Value, batch_first: Value = False, *args: Value, **kwargs: Value
) -> Value:
    """Padded to the longest."""
    del args, kwargs
    parts = [tensor(context, s) for s in context.iterate(sequences).items]
    longest = max((p.shape or (0,))[0] for p in parts)
    rest = (parts[0].shape or (0,))[1:]
    lead = (len(parts), longest) if batch_first is True else (longest, len(parts))
    return engine_of(context).apply("pad_sequence", parts, (*lead, *rest), parts[0].dtype)
