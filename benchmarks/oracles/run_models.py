"""Runs in the oracle environment: builds library models and says what the framework itself makes of them.

Reads ``{"name": {"source": …, "inputs": …, "batches": [2, 4]}}`` as JSON on standard input and prints JSON. ``source``
defines ``model``; ``inputs`` is an expression over ``batch`` for the call's arguments (a tuple, or a mapping). PyTorch
models are built on the meta device, and stepped with fake tensors: shapes, saved storages and FLOPs need no memory and
no arithmetic.
"""

# ruff: noqa: PLC0415 - a framework is imported only where it is asked about

import contextlib
import gc
import json
import math
import pathlib
import sys
import time

HERE = pathlib.Path(__file__).parent


def declare_torchvision():
    """Declare torchvision's compiled operators (their public schemas), so that its source alone can be imported."""
    import torch

    library = torch.library.Library("torchvision", "DEF")
    for schema in (HERE / "torchvision_operators.txt").read_text().splitlines():
        with contextlib.suppress(RuntimeError):
            library.define(schema)
    return library


def flat(value):
    import torch

    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [t for v in value for t in flat(v)]
    if isinstance(value, dict):
        return [t for v in value.values() for t in flat(v)]
    return [t for v in vars(value).values() for t in flat(v)] if hasattr(value, "__dataclass_fields__") else []


def call(model, inputs):
    return model(**inputs) if isinstance(inputs, dict) else model(*inputs)


def measure_torch(case):
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.utils.flop_counter import FlopCounterMode

    space, plain = build(torch, case["source"])
    result = count(space["model"])
    for batch in case.get("batches") or ():
        try:
            result[str(batch)] = step(torch, FakeTensorMode, FlopCounterMode, case, space, batch)
        except Exception:
            if not plain:
                # what the constructor keeps beside parameters and buffers has no values on the meta device
                space, plain = build(torch, case["source"], meta=False)
                try:
                    result[str(batch)] = step(torch, FakeTensorMode, FlopCounterMode, case, space, batch)
                    continue
                except Exception as again:
                    error = again
            result[str(batch)] = {"error": f"{type(error).__name__}: {error}"[:300]}
        gc.collect()
    return result


def build(torch, source, meta=True):
    """The case's names, and whether the model was built with values: some constructors compute with them."""
    if meta:
        try:
            space = {}
            with torch.device("meta"):
                exec(source, space)
            return space, False
        except Exception:
            gc.collect()
    space = {}
    exec(source, space)
    return space, True


def count(model):
    parameters = list(model.parameters())
    return {
        "parameters": sum(p.numel() for p in parameters),
        "trainable": sum(p.numel() for p in parameters if p.requires_grad),
    }


def step(torch, fake_mode, counter, case, space, batch):
    model = space["model"].train()
    space["batch"] = batch
    with fake_mode(allow_non_fake_inputs=True):
        pretend(torch, model)
        return forward(torch, counter, model, eval(case["inputs"], space))


def pretend(torch, model):
    """Put fake tensors in place of parameters and buffers (many constructors compute with values, which fakes lack)."""
    seen = {}

    def fake(tensor):
        if id(tensor) not in seen:
            plain = torch.empty(tensor.shape, dtype=tensor.dtype)
            made = torch.nn.Parameter(plain, tensor.requires_grad) if isinstance(tensor, torch.nn.Parameter) else plain
            seen[id(tensor)] = (tensor, made)
        return seen[id(tensor)][1]

    for module in model.modules():
        for table in (module._parameters, module._buffers):
            for name, tensor in table.items():
                if tensor is not None:
                    table[name] = fake(tensor)


def forward(torch, counter_class, model, inputs):
    shapes = {}
    leaves = [(n, m) for n, m in model.named_modules() if not list(m.children())]

    def note(name):
        def hook(_module, _args, output):
            shapes.setdefault(name, [list(t.shape) for t in flat(output)])

        return hook

    hooks = [m.register_forward_hook(note(n)) for n, m in leaves]
    own = {t.untyped_storage()._cdata for t in [*model.parameters(), *model.buffers()]}
    kept, alive = {}, []

    def pack(t):
        storage = t.untyped_storage()
        if storage._cdata not in own:
            kept[storage._cdata] = storage.nbytes()
            alive.append(storage)
        return t

    with counter_class(display=False, custom_mapping=formulas(torch)) as counter:
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
            outs = call(model, inputs)
        for hook in hooks:
            hook.remove()
        given = {t.untyped_storage()._cdata for t in flat(inputs)}
        result = {
            "modules": shapes,
            "saved_bytes": sum(kept.values()),
            "saved_without_inputs": sum(v for k, v in kept.items() if k not in given),
            "shapes": [list(t.shape) for t in flat(outs)],
        }
        out = next(t for t in flat(outs) if t.is_floating_point() and t.requires_grad)
        out.backward(torch.ones_like(out))
    result["flops"] = counter.get_total_flops()
    return result


def formulas(torch):
    """Where FlopCounterMode is not right (PyTorch 2.13).

    It knows the attention kernels of GPUs alone, though the CPU does the same arithmetic; and its formula for the
    gradient of a convolution's weight leaves the groups out: a depthwise one counts as its channels times the work.
    """
    from torch.utils.flop_counter import flop_registry

    def as_is(formula):
        def count(*args, **kwargs):
            return formula(*args, **kwargs)

        count._get_raw = True  # the registry's formulas take tensors already
        return count

    def convolution_backward(
        grad_shape, x_shape, w_shape, _bias, _stride, _padding, _dilation, transposed, _more, _groups, mask, **_kwargs
    ):
        # the weight's second dimension is already that of one group
        points = math.prod((x_shape if transposed else grad_shape)[2:])
        return 2 * x_shape[0] * points * math.prod(w_shape) * (int(mask[0]) + int(mask[1]))

    aten = torch.ops.aten
    return {
        aten.convolution_backward: convolution_backward,
        aten._scaled_dot_product_flash_attention_for_cpu: as_is(
            flop_registry[aten._scaled_dot_product_flash_attention]
        ),
        aten._scaled_dot_product_flash_attention_for_cpu_backward: as_is(
            flop_registry[aten._scaled_dot_product_flash_attention_backward]
        ),
    }


def build_paddle(paddle, source, lazy):
    """The case's names; without values where none are needed and no constructor computes with them."""
    if lazy:
        with contextlib.suppress(Exception):
            space = {}
            # names of parameters must be unique in a process, and some packages give them
            with paddle.LazyGuard(), paddle.utils.unique_name.guard():
                exec(source, space)
            return space
    space = {}
    with undrawn(paddle) if lazy else contextlib.nullcontext(), paddle.utils.unique_name.guard():
        exec(source, space)
    return space


@contextlib.contextmanager
def undrawn(paddle):
    """Fill instead of drawing random numbers, which takes minutes for a large model on a CPU."""
    operators, core = paddle._C_ops, paddle.base.core
    names = ("gaussian", "uniform", "truncated_gaussian_random")
    real = {name: getattr(operators, name) for name in names}

    def filled(shape, *arguments, **_more):
        dtype = next(a for a in arguments if isinstance(a, (core.VarDesc.VarType, core.DataType)))
        return operators.full(shape, 0.5, dtype, arguments[-1])

    for name in names:
        setattr(operators, name, filled)
    try:
        yield
    finally:
        for name, operator in real.items():
            setattr(operators, name, operator)


def measure_paddle(case):
    import paddle

    space = build_paddle(paddle, case["source"], lazy=not case.get("batches"))
    model = space["model"]
    if not isinstance(model, paddle.nn.Layer):
        return {"error": f"not a layer: {type(model).__name__}"}
    parameters = model.parameters()
    result = {
        "parameters": sum(math.prod(p.shape) for p in parameters),
        "trainable": sum(int(p.size) for p in parameters if not p.stop_gradient),
    }
    for batch in case.get("batches") or ():
        try:
            space["batch"] = batch
            result[str(batch)] = forward_paddle(paddle, model, eval(case["inputs"], space))
        except Exception as error:
            result[str(batch)] = {"error": f"{type(error).__name__}: {error}"[:300]}
        gc.collect()
    return result


def forward_paddle(paddle, model, inputs):
    """Leaf shapes, bytes kept for backward, FLOPs of forward and backward.

    Kept are the tensors that PaddlePaddle hands to its hooks, each allocation once, without parameters and buffers;
    ``held_bytes`` is what the allocator has given out since: it must agree but for what nothing needs any more.
    """
    stat = paddle.base.core.host_memory_stat_current_value
    shapes, kept, alive, hooks = {}, {}, [], []
    for name, layer in model.named_sublayers():
        if not list(layer.children()):
            hooks.append(layer.register_forward_post_hook(note_shape(paddle, shapes, name)))
    own = {place(t) for t in [*model.parameters(), *model.buffers()]}

    def pack(t):
        if place(t) not in own:
            kept[place(t)] = t._holder_size()
            alive.append(t)
        return t

    gc.collect()
    before = stat("Allocated", 0)
    with counted(paddle) as flops, paddle.autograd.saved_tensors_hooks(pack, lambda t: t):
        outs = call(model, inputs)
    held = stat("Allocated", 0) - before
    for hook in hooks:
        hook.remove()
    given = {place(t) for t in inputs}
    return {
        "modules": shapes,
        "saved_bytes": sum(kept.values()),
        "saved_without_inputs": sum(v for k, v in kept.items() if k not in given),
        "held_bytes": held,
        "shapes": [list(t.shape) for t in (outs if isinstance(outs, (list, tuple)) else [outs])],
        "flops": sum(flops),
    }


def place(t):
    """Where the allocation begins that a tensor lies in."""
    return t.data_ptr() - t._offset()


def note_shape(paddle, shapes, name):
    def hook(_layer, _inputs, output):
        if isinstance(output, paddle.Tensor):
            shapes.setdefault(name, [list(output.shape)])

    return hook


@contextlib.contextmanager
def counted(paddle):
    """FLOPs of convolutions and products as PaddlePaddle calls them, by FlopCounterMode's rule.

    Two for each multiply-add, once forward, and once for each operand that gets a gradient. PaddlePaddle has no such
    counter: ``paddle.flops`` knows forward passes of some layers.
    """
    operators, found = paddle._C_ops, []

    def counting(operator, work):
        def run(*arguments, **named):
            out = operator(*arguments, **named)
            first, second = arguments[:2]
            found.append(2 * work(first, second, out) * (1 + (not first.stop_gradient) + (not second.stop_gradient)))
            return out

        return run

    def convolution(_x, weight, out):
        # the weight's second dimension is already that of one group; every channel of the output takes one row of it
        return math.prod(out.shape) * math.prod(weight.shape[1:])

    def transposed(x, weight, _out):
        return math.prod(x.shape) * math.prod(weight.shape[1:])

    def product(x, _y, out):
        return math.prod(out.shape) * x.shape[-1]

    rules = {
        "conv2d": convolution,
        "depthwise_conv2d": convolution,
        "conv3d": convolution,
        "conv2d_transpose": transposed,
        "matmul": product,
        "linear": product,
        "bmm": product,
    }
    real = {name: getattr(operators, name) for name in rules if hasattr(operators, name)}
    for name, operator in real.items():
        setattr(operators, name, counting(operator, rules[name]))
    try:
        yield found
    finally:
        for name, operator in real.items():
            setattr(operators, name, operator)


def main():
    cases = json.load(sys.stdin)
    found, version, keep = {}, {}, None
    for name, case in cases.items():
        begun = time.monotonic()
        try:
            # what packages print must not mix with the answer
            with contextlib.redirect_stdout(sys.stderr):
                if case["framework"] == "paddle":
                    import paddle

                    version["paddle"] = paddle.__version__
                    found[name] = measure_paddle(case)
                else:
                    import torch

                    torch.set_num_threads(1)
                    version["torch"] = torch.__version__
                    keep = keep or declare_torchvision()
                    found[name] = measure_torch(case)
        except Exception as error:
            found[name] = {"error": f"{type(error).__name__}: {error}"[:300]}
        gc.collect()
        print(f"{name}: {time.monotonic() - begun:.1f} s {found[name].get('error', '')}", file=sys.stderr, flush=True)
    for library in ("timm", "transformers", "torchvision"):
        if library in sys.modules:
            version[library] = sys.modules[library].__version__
    json.dump({"versions": version, "cases": found}, sys.stdout)


if __name__ == "__main__":
    main()
