"""Automatic mixed precision: which operators run in the lower type, which stay in float32.

Sources: PyTorch ``aten/src/ATen/autocast_mode.h`` (CUDA lists); PaddlePaddle
``python/paddle/amp/amp_lists.py`` (FP16/BF16 white and black lists of release 3.3). Names are the engine's
operator names.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from oarlock_profiler.core.engine.tensor import Tensor

TORCH_LOWER = frozenset({
    "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "linear",
    "matmul", "mm", "bmm", "addmm", "addbmm", "baddbmm", "addmv", "mv", "chain_matmul", "einsum", "prelu",
    "scaled_dot_product_attention", "rnn", "lstm", "gru", "rnn_cell", "lstm_cell", "gru_cell",
})  # fmt: skip
TORCH_FLOAT32 = frozenset({
    "acos", "asin", "cosh", "erfinv", "exp", "expm1", "log", "log10", "log2", "log1p", "reciprocal", "rsqrt",
    "sinh", "tan", "pow", "softplus", "layer_norm", "rms_norm", "group_norm", "norm", "nuclear_norm",
    "cosine_similarity", "poisson_nll_loss", "cosine_embedding_loss", "nll_loss", "hinge_embedding_loss",
    "kl_div", "l1_loss", "smooth_l1_loss", "huber_loss", "mse_loss", "margin_ranking_loss",
    "multilabel_margin_loss", "soft_margin_loss", "triplet_margin_loss", "multi_margin_loss",
    "binary_cross_entropy_with_logits", "dist", "pdist", "cdist", "renorm", "logsumexp", "softmax",
    "log_softmax", "cumprod", "cumsum", "prod", "sum", "ctc_loss", "cross_entropy",
})  # fmt: skip
TORCH_PROMOTE = frozenset({
    "addcdiv", "addcmul", "atan2", "bilinear", "cross", "dot", "grid_sample", "index_put", "scatter_add",
    "tensordot", "concat", "stack",
})  # fmt: skip

PADDLE_LOWER = frozenset({
    "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "linear",
    "matmul", "mm", "bmm", "addmm", "mv", "einsum", "scaled_dot_product_attention", "fused_attention",
    "fused_feedforward", "max_pool2d_with_index", "flash_attention", "fake_quantize",
})  # fmt: skip
PADDLE_FLOAT32 = frozenset({
    "tan", "acos", "asin", "sinh", "cosh", "atanh", "tanh_shrink", "erfinv", "exp", "expm1", "log", "log10",
    "log2", "reciprocal", "rsqrt", "pow", "square", "mean", "sum", "mean_all", "softmax", "cross_entropy",
    "nll_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits", "huber_loss", "smooth_l1_loss",
    "kl_div", "l1_loss", "mse_loss", "log_softmax", "log_loss", "logsumexp", "cumsum", "cumprod", "prod",
    "p_norm", "norm", "dist", "cosine_similarity", "layer_norm", "group_norm", "rms_norm", "interpolate",
    "linear_interp", "softplus", "renorm", "multinomial", "sigmoid_focal_loss", "ctc_loss",
})  # fmt: skip


@dataclass(slots=True)
class Autocast:
    """One entry of the autocast stack. ``dtype`` None: full precision inside.

    ``level`` is ``O1`` (by lists) or ``O2`` (all but ``float32``); ``cache`` keeps cast weights until the
    outermost context exits (PyTorch only), keyed by the parameter's identity.
    """

    dtype: str | None
    lower: frozenset[str]
    float32: frozenset[str]
    promote: frozenset[str] = frozenset()
    level: str = "O1"
    use_cache: bool = False
    cache: dict[int, tuple[Tensor, Tensor]] = field(default_factory=dict)

    def wanted(self, name: str) -> str | None:
        """The type operator ``name`` wants its floating inputs in.

        ``promote`` for the widest; None: as they are.
        """
        if self.dtype is None:
            return None
        if name in self.float32:
            return "float32"
        if name in self.lower or self.level == "O2":
            return self.dtype
        if name in self.promote:
            return "promote"
        return None


def torch_autocast(dtype: str | None, cache_enabled: bool = True) -> Autocast:
    """``torch.autocast`` on a CUDA device."""
    return Autocast(dtype, TORCH_LOWER, TORCH_FLOAT32, TORCH_PROMOTE, use_cache=cache_enabled)


def paddle_autocast(
    dtype: str | None, level: str = "O1", white: frozenset[str] = frozenset(), black: frozenset[str] = frozenset()
) -> Autocast:
    """``paddle.amp.auto_cast`` on a GPU, with the script's own lists."""
    return Autocast(dtype, (PADDLE_LOWER | white) - black, (PADDLE_FLOAT32 | black) - white, level=level)
