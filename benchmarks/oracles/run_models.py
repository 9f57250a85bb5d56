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


def measure_paddle(case):
    import paddle

    space = {"batch": 2}
    exec(case["source"], space)
    model = space["model"]
    parameters = model.parameters()
    result = {
        "parameters": sum(int(p.size) for p in parameters),
        "trainable": sum(int(p.size) for p in parameters if not p.stop_gradient),
    }
    shapes = {}
    for name, layer in model.named_sublayers():
        if not list(layer.children()):
            layer.register_forward_post_hook(
                lambda _m, _i, o, name=name: shapes.setdefault(name, [list(o.shape)]) and None
            )
    for batch in case.get("batches", ())[:1]:
        space["batch"] = batch
        with paddle.no_grad():
            call(model, eval(case["inputs"], space))
        result[str(batch)] = {"modules": shapes}
    return result


def main():
    cases = json.load(sys.stdin)
    found, version, keep = {}, {}, None
    for name, case in cases.items():
        begun = time.monotonic()
        try:
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
