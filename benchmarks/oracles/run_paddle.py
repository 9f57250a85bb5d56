"""Runs in the oracle environment: measures PaddlePaddle on the cases given as JSON on standard input. Prints JSON."""

import gc
import json
import sys

import paddle

core = paddle.base.core


def flat(value):
    if isinstance(value, paddle.Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [t for v in value for t in flat(v)]
    if isinstance(value, dict):
        return [t for v in value.values() for t in flat(v)]
    return []


def now():
    return core.host_memory_stat_current_value("Allocated", 0)


def reset():
    core.host_memory_stat_reset_peak_value("Allocated", 0)


def step(model, inputs):
    out = next(t for t in flat(model(*inputs)) if t.is_floating_point())
    if not out.stop_gradient:
        gradient = paddle.ones_like(out)
        out.backward(gradient)


def measure(source):
    paddle.seed(0)
    space = {}
    exec(source, space)
    model, inputs = space["model"], space["inputs"]
    is_layer = isinstance(model, paddle.nn.Layer)
    result = {}
    if is_layer:
        ps = model.parameters()
        result["parameters"] = int(sum(p.size for p in ps))
        result["trainable"] = int(sum(p.size for p in ps if not p.stop_gradient))
        result["modules"] = {}
        hooks = [
            m.register_forward_post_hook(
                lambda _m, _i, o, n=n: result["modules"].setdefault(n, [list(t.shape) for t in flat(o)]) and None
            )
            for n, m in model.named_sublayers(include_self=True)
        ]
    gc.collect()
    before = now()
    outs = model(*inputs)
    held = now() - before
    result["shapes"] = [list(t.shape) for t in flat(outs)]
    result["dtypes"] = [str(t.dtype).replace("paddle.", "") for t in flat(outs)]
    result["held"] = held
    del outs
    if is_layer:
        for h in hooks:
            h.remove()
    gc.collect()
    leaves = (list(model.parameters()) if is_layer else []) + [t for t in flat(inputs) if not t.stop_gradient]
    peaks = []
    for _ in range(2):
        base = now()
        reset()
        step(model, inputs)
        peaks.append(core.host_memory_stat_peak_value("Allocated", 0) - base)
        for t in leaves:
            t.clear_gradient() if hasattr(t, "clear_gradient") else None
    result["peaks"] = peaks
    return result


def main():
    cases = json.load(sys.stdin)
    found = {}
    for name, source in cases.items():
        try:
            found[name] = measure(source)
        except Exception as error:
            found[name] = {"error": f"{type(error).__name__}: {error}"[-300:]}
    sys.stdout.write("\n" + json.dumps({"version": paddle.__version__, "cases": found}))


main()
