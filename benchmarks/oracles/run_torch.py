"""Runs in the oracle environment: measures PyTorch on the cases given as JSON on standard input. Prints JSON."""

import json
import sys

import torch
from torch.utils.flop_counter import FlopCounterMode


def flat(value):
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [t for v in value for t in flat(v)]
    if isinstance(value, dict):
        return [t for v in value.values() for t in flat(v)]
    return []


def step(model, inputs):
    out = next(t for t in flat(model(*inputs)) if t.is_floating_point())
    if out.requires_grad:
        gradient = torch.ones_like(out)
        out.backward(gradient)


def measure(source):
    torch.manual_seed(0)
    space = {}
    exec(source, space)
    model, inputs = space["model"], space["inputs"]
    is_module = isinstance(model, torch.nn.Module)
    result = {}
    if is_module:
        ps = list(model.parameters())
        result["parameters"] = sum(p.numel() for p in ps)
        result["trainable"] = sum(p.numel() for p in ps if p.requires_grad)
        result["modules"] = {}
        hooks = [
            m.register_forward_hook(
                lambda _m, _i, o, n=n: result["modules"].setdefault(n, [list(t.shape) for t in flat(o)]) and None
            )
            for n, m in model.named_modules()
        ]
    kept = {}
    own = {
        t.untyped_storage().data_ptr() for t in (list(model.parameters()) + list(model.buffers()) if is_module else [])
    }

    def pack(t):
        pointer = t.untyped_storage().data_ptr()
        if pointer not in own:
            kept[pointer] = t.untyped_storage().nbytes()
        return t

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        outs = model(*inputs)
    given = {t.untyped_storage().data_ptr() for t in flat(inputs)}
    result["saved_bytes"] = sum(v for k, v in kept.items())
    result["saved_without_inputs"] = sum(v for k, v in kept.items() if k not in given)
    result["shapes"] = [list(t.shape) for t in flat(outs)]
    result["dtypes"] = [str(t.dtype).replace("torch.", "") for t in flat(outs)]
    del outs
    if is_module:
        for h in hooks:
            h.remove()
    with FlopCounterMode(display=False) as counter:
        step(model, inputs)
    result["flops"] = counter.get_total_flops()
    leaves = (list(model.parameters()) if is_module else []) + [t for t in flat(inputs) if t.requires_grad]
    peaks = []
    for t in leaves:
        t.grad = None
    for _ in range(2):
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as prof:
            step(model, inputs)
        events = sorted(
            (e.start_ns(), e.nbytes()) for e in prof.profiler.kineto_results.events() if e.name() == "[memory]"
        )
        now = peak = 0
        for _, nbytes in events:
            now += nbytes
            peak = max(peak, now)
        peaks.append(peak)
        for t in leaves:
            t.grad = None
    result["peaks"] = peaks
    return result


def main():
    torch.set_num_threads(1)
    cases = json.load(sys.stdin)
    found = {}
    for name, source in cases.items():
        try:
            found[name] = measure(source)
        except Exception as error:
            found[name] = {"error": f"{type(error).__name__}: {error}"[:300]}
    json.dump({"version": torch.__version__, "cases": found}, sys.stdout)


main()
