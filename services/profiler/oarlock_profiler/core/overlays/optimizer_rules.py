"""What each optimiser keeps per parameter, and what a step allocates and drops.

Sources: PyTorch 2.13 ``torch/optim/*.py`` (single-tensor and foreach implementations); PaddlePaddle 3.3
``python/paddle/optimizer/*.py`` (accumulators; kernels update in place); bitsandbytes ``optim/optimizer.py``
(block-wise 8-bit states); ``transformers/optimization.py`` and ``torch/optim/_adafactor.py`` (factored second moments).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

Shape = tuple[int, ...]
BLOCK = 256
"""Elements that share one scale in an 8-bit state (bitsandbytes ≥ 0.44; 2048 before)."""
EIGHT_BIT_FLOOR = 4096
"""Parameters with fewer elements keep 32-bit states (bitsandbytes ``min_8bit_size``)."""


@dataclass(frozen=True, slots=True)
class Rule:
    """State tensors and temporaries of one optimiser.

    ``states`` names full-size state tensors; ``scalars`` is how many one-element tensors lie on the device per
    parameter.
    ``foreach`` counts full sets of temporaries alive at a foreach step's peak, ``single`` those of the parameter being
    updated otherwise; ``decay`` says that weight decay copies the gradient first. ``eager``: state is made by the
    constructor.
    ``drops_decay``: a foreach step drops those copies before it makes its other temporaries.
    ``factored``: second moments are kept as row and column sums of the last two dimensions.
    """

    name: str
    states: tuple[str, ...] = ()
    scalars: int = 0
    foreach: int = 0
    single: int = 0
    decay: bool = False
    eager: bool = False
    factored: bool = False
    eight_bit: bool = False
    float32_states: bool = False
    history: bool = False
    fused_only: bool = False
    drops_decay: bool = False


TORCH = {
    rule.name: rule
    for rule in (
        Rule("SGD", decay=True),
        Rule("Adam", ("exp_avg", "exp_avg_sq"), foreach=1, single=2, decay=True, drops_decay=True),
        Rule("AdamW", ("exp_avg", "exp_avg_sq"), foreach=1, single=2),
        Rule("NAdam", ("exp_avg", "exp_avg_sq"), foreach=1, single=2, decay=True),
        Rule("RAdam", ("exp_avg", "exp_avg_sq"), foreach=1, single=5, decay=True, drops_decay=True),
        Rule("Adamax", ("exp_avg", "exp_inf"), foreach=1, single=1, decay=True, drops_decay=True),
        Rule("Adagrad", ("sum",), foreach=2, single=1, decay=True, drops_decay=True, eager=True),
        Rule("Adadelta", ("square_avg", "acc_delta"), foreach=2, single=2, decay=True),
        Rule("RMSprop", ("square_avg",), foreach=1, single=1, decay=True),
        Rule("Rprop", ("prev", "step_size"), foreach=2, single=3),
        Rule("ASGD", ("ax",), foreach=1, decay=True, drops_decay=True),
        Rule("SparseAdam", ("exp_avg", "exp_avg_sq"), single=2),
        Rule("Adafactor", factored=True, single=1),
        Rule("Muon", ("momentum_buffer",), single=2),
        Rule("LBFGS", history=True),
    )
}

PADDLE = {
    rule.name: rule
    for rule in (
        Rule("SGD", decay=True, float32_states=True),
        Rule("Momentum", ("velocity",), float32_states=True),
        Rule("LarsMomentum", ("velocity",), float32_states=True),
        Rule("Adam", ("moment1", "moment2"), decay=True, float32_states=True),
        Rule("AdamW", ("moment1", "moment2"), float32_states=True),
        Rule("Adamax", ("moment", "inf_norm"), scalars=1, decay=True, float32_states=True),
        Rule("Adagrad", ("moment",), decay=True, float32_states=True),
        Rule("Adadelta", ("_avg_squared_grad", "_avg_squared_update"), decay=True, float32_states=True),
        Rule("RMSProp", ("momentum", "mean_square", "mean_grad"), decay=True, float32_states=True),
        Rule("Lamb", ("moment1", "moment2"), scalars=2, single=1, float32_states=True),
        Rule(
            "NAdam",
            ("momentum_decay_pow", "beta2_pow", "mu_product", "moment1", "moment2"),
            decay=True,
            float32_states=True,
        ),
        Rule("RAdam", ("beta1_pow", "beta2_pow", "rho", "moment1", "moment2"), decay=True, float32_states=True),
        Rule("ASGD", ("d", "y"), scalars=1, decay=True, float32_states=True),
        Rule("Rprop", ("prev", "learning_rate"), float32_states=True),
        Rule("LBFGS", history=True),
    )
}

_ADAM = ("exp_avg", "exp_avg_sq")
OTHERS = {
    "transformers.AdamW": Rule("AdamW", _ADAM, single=2),
    "transformers.Adafactor": Rule("Adafactor", factored=True, single=2),
    "apex.optimizers.FusedAdam": Rule("FusedAdam", _ADAM, float32_states=True, fused_only=True),
    "apex.optimizers.FusedLAMB": Rule("FusedLAMB", _ADAM, float32_states=True, fused_only=True, single=1),
    "apex.optimizers.FusedSGD": Rule("FusedSGD", ("momentum_buffer",), fused_only=True),
    "deepspeed.ops.adam.FusedAdam": Rule("FusedAdam", _ADAM, float32_states=True, fused_only=True),
    "deepspeed.ops.adam.DeepSpeedCPUAdam": Rule("DeepSpeedCPUAdam", _ADAM, float32_states=True, fused_only=True),
    "lion_pytorch.Lion": Rule("Lion", ("exp_avg",), single=1),
    "torch_optimizer.Lamb": Rule("Lamb", _ADAM, single=2),
    "torch_optimizer.RAdam": Rule("RAdam", _ADAM, single=2),
    "torch_optimizer.AdaBelief": Rule("AdaBelief", ("exp_avg", "exp_avg_var"), single=2),
    "timm.optim.AdamP": Rule("AdamP", _ADAM, single=2),
    "timm.optim.Lamb": Rule("Lamb", _ADAM, single=2),
    "timm.optim.RMSpropTF": Rule("RMSpropTF", ("square_avg", "momentum_buffer"), single=2),
    "timm.optim.Lion": Rule("Lion", ("exp_avg",), single=1),
    "bitsandbytes.optim.Adam8bit": Rule("Adam8bit", ("state1", "state2"), eight_bit=True, fused_only=True),
    "bitsandbytes.optim.AdamW8bit": Rule("AdamW8bit", ("state1", "state2"), eight_bit=True, fused_only=True),
    "bitsandbytes.optim.PagedAdamW8bit": Rule("PagedAdamW8bit", ("state1", "state2"), eight_bit=True, fused_only=True),
    "bitsandbytes.optim.PagedAdamW": Rule("PagedAdamW", ("state1", "state2"), float32_states=True, fused_only=True),
    "bitsandbytes.optim.PagedAdamW32bit": Rule(
        "PagedAdamW", ("state1", "state2"), float32_states=True, fused_only=True
    ),
    "bitsandbytes.optim.Lion8bit": Rule("Lion8bit", ("state1",), eight_bit=True, fused_only=True),
    "bitsandbytes.optim.SGD8bit": Rule("SGD8bit", ("state1",), eight_bit=True, fused_only=True),
    "bitsandbytes.optim.AdamW": Rule("AdamW", ("state1", "state2"), float32_states=True, fused_only=True),
    "bitsandbytes.optim.Adam": Rule("Adam", ("state1", "state2"), float32_states=True, fused_only=True),
}


def adjusted(rule: Rule, options: dict[str, object]) -> Rule:
    """``rule`` as the constructor's options change it (momentum buffers, amsgrad, centred variance…)."""
    states = rule.states
    foreach, single = rule.foreach, rule.single
    if rule.name == "SGD" and options.get("momentum"):
        states = ("momentum_buffer",)
        single += 1 if options.get("nesterov") else 0
    if options.get("amsgrad") and "max_exp_avg_sq" not in states:
        states = (*states, "max_exp_avg_sq")
    if rule.name == "RMSprop":
        states += ("momentum_buffer",) if options.get("momentum") else ()
        states += ("grad_avg",) if options.get("centered") else ()
    if rule.name == "Adagrad" and options.get("initial_accumulator_value"):
        states = ("sum",)
    factored = rule.factored
    if rule.name == "Adafactor" and options.get("beta1") is not None:
        states = ("exp_avg",)
    return replace(rule, states=states, foreach=foreach, single=single, factored=factored)


def state_tensors(rule: Rule, shape: Shape, dtype: str) -> list[tuple[str, Shape, str]]:
    """State tensors that the device holds for one parameter: (name, shape, dtype)."""
    kept = "float32" if rule.float32_states and dtype in ("float16", "bfloat16") else dtype
    elements = math.prod(shape)
    if rule.eight_bit and elements >= EIGHT_BIT_FLOOR:
        blocks = (-(-elements // BLOCK),)
        return [
            entry
            for state in rule.states
            for entry in ((state, shape, "uint8"), (f"{state}_absmax", blocks, "float32"))
        ]
    tensors = [(state, shape, "float32" if rule.eight_bit else kept) for state in rule.states]
    if rule.factored:
        if len(shape) >= 2:
            tensors.append(("row", (*shape[:-1], 1), kept))
            tensors.append(("column", (*shape[:-2], 1, shape[-1]), kept))
        else:
            tensors.append(("variance", shape, kept))
    tensors += [(f"scalar{i}", (1,), "float32") for i in range(rule.scalars)]
    return tensors
