"""PyTorch cases: each source defines ``model`` (called with ``*inputs``) and ``inputs``."""

# ruff: noqa: E501 - a case is easier to read on one line

HEAD = """
import torch, math
import torch.nn as nn
import torch.nn.functional as F
"""

X3 = "torch.randn(4, 64, 256)"
IMG = "torch.randn(4, 16, 32, 32)"

# name: (expression over x, y, z; inputs that need gradients; inputs that do not)
EXPRESSIONS: dict[str, tuple[str, list[str], list[str]]] = {}


def _add(name: str, expression: str, *inputs: str, plain: tuple[str, ...] = ()) -> None:
    EXPRESSIONS[name] = (expression, list(inputs) or [X3], list(plain))


for _fn in (
    "relu", "relu6", "elu", "selu", "celu", "gelu", "silu", "mish", "hardswish", "hardsigmoid", "hardtanh", "leaky_relu", "softplus",
    "softsign", "softshrink", "hardshrink", "tanhshrink", "logsigmoid",
):  # fmt: skip
    _add(_fn, f"F.{_fn}(x)")
for _fn in (
    "exp", "log", "log2", "log10", "log1p", "expm1", "sqrt", "rsqrt", "square", "abs", "sin", "cos", "tan", "tanh", "sigmoid", "erf",
    "reciprocal", "neg", "sign", "floor", "round", "atan", "sinh", "cosh",
):  # fmt: skip
    _add(_fn, f"torch.{_fn}(x)")
for _fn in ("relu", "silu", "leaky_relu", "hardswish", "elu", "relu6", "hardtanh", "mish"):
    _add(f"{_fn}_inplace", f"F.{_fn}(x * 2.0, inplace=True)")
_add("softmax", "F.softmax(x, dim=-1)")
_add("log_softmax", "F.log_softmax(x, dim=-1)")
_add("glu", "F.glu(x)")
_add("prelu", "F.prelu(x, y)", X3, "torch.randn(64)")
_add("add", "x + y", X3, X3)
_add("add_broadcast", "x + y", X3, "torch.randn(256)")
_add("add_number", "x + 1.0")
_add("rsub_number", "1.0 - x")
_add("sub", "x - y", X3, X3)
_add("mul", "x * y", X3, X3)
_add("mul_plain", "x * y", X3, plain=(X3,))
_add("mul_number", "x * 2.0")
_add("div", "x / y", X3, X3)
_add("div_number", "x / 2.0")
_add("rdiv_number", "1.0 / x")
_add("pow2", "x ** 2")
_add("pow_tensor", "torch.pow(x.abs(), y)", X3, X3)
_add("maximum", "torch.maximum(x, y)", X3, X3)
_add("clamp", "torch.clamp(x, -1, 1)")
_add("where", "torch.where(x > 0, x, y)", X3, X3)
_add("masked_fill", "x.masked_fill(x > 0, 0.0)")
_add("residual", "(F.gelu(x) + x) * 0.5 + x")
_add("chain", "torch.sigmoid(F.relu(x) * 3.0) + torch.tanh(x)")
_add("sum", "x.sum()")
_add("sum_dim", "x.sum(dim=1)")
_add("mean", "x.mean()")
_add("mean_dim", "x.mean(dim=(1, 2))")
_add("max", "x.max()")
_add("max_dim", "x.max(dim=1)[0]")
_add("amax", "x.amax(dim=1)")
_add("var", "x.var(dim=1)")
_add("std", "x.std(dim=1)")
_add("norm", "torch.norm(x, dim=1)")
_add("logsumexp", "torch.logsumexp(x, dim=1)")
_add("cumsum", "torch.cumsum(x, dim=1)")
_add("prod", "x.prod(dim=1)")
_add("normalize", "F.normalize(x, dim=-1)")
_add("cosine_similarity", "F.cosine_similarity(x, y, dim=-1)", X3, X3)
_add("reshape", "x.reshape(4, -1) * 2.0")
_add("transpose_contiguous", "x.transpose(1, 2).contiguous()")
_add("transpose_reshape", "x.transpose(0, 1).reshape(64, -1) * 1.5")
_add("permute_mul", "x.permute(2, 0, 1) * 2.0")
_add("cat", "torch.cat([x, y], dim=1)", X3, X3)
_add("cat_last", "torch.cat([x, y], dim=-1) * 2.0", X3, X3)
_add("stack", "torch.stack([x, y], dim=1)", X3, X3)
_add("split", "sum(torch.split(x, 16, dim=1)[i] * float(i) for i in range(4))")
_add("chunk", "x.chunk(2, dim=-1)[0] * x.chunk(2, dim=-1)[1]")
_add("unbind", "x.unbind(1)[0] + x.unbind(1)[1]")
_add("expand", "y.expand(4, 64, 256) * x", X3, "torch.randn(1, 64, 256)")
_add("repeat", "x.repeat(2, 1, 1)")
_add("slice", "x[:, :32] * 2.0")
_add("select", "x[:, 0] * 2.0")
_add("slice_step", "x[:, 0::2, :] + x[:, 1::2, :]")
_add("index", "x[:, z]", X3, plain=("torch.arange(16)",))
_add("gather", "torch.gather(x, 1, z)", X3, plain=("torch.zeros(4, 8, 256, dtype=torch.int64)",))
_add("index_select", "torch.index_select(x, 1, z)", X3, plain=("torch.arange(16)",))
_add("flip", "x.flip(1)")
_add("roll", "torch.roll(x, 1, 1)")
_add("tril", "torch.tril(x)")
_add("pad", "F.pad(x, (1, 1))")
_add("pad_reflect", "F.pad(x, (2, 2, 2, 2), mode='reflect')", IMG)
_add("topk", "x.topk(8, dim=-1)[0]")
_add("sort", "x.sort(dim=-1)[0]")
_add("clone", "x.clone()")
_add("cast_half", "x.half().float()")
_add("matmul2d", "x @ y", "torch.randn(128, 256)", "torch.randn(256, 64)")
_add("matmul3d_2d", "x @ y", X3, "torch.randn(256, 128)")
_add("bmm", "torch.bmm(x, y)", X3, "torch.randn(4, 256, 32)")
_add("matmul4d", "x @ y", "torch.randn(2, 4, 64, 32)", "torch.randn(2, 4, 32, 64)")
_add("matmul_transposed", "x.view(4, 64, 4, 64).transpose(1, 2) @ y.view(4, 64, 4, 64).permute(0, 2, 3, 1)", X3, X3)
_add("matmul_broadcast", "x @ y", "torch.randn(2, 4, 64, 32)", "torch.randn(4, 32, 64)")
_add("linear", "F.linear(x, y)", X3, "torch.randn(128, 256)")
_add("linear_bias", "F.linear(x, y, z)", X3, "torch.randn(128, 256)", "torch.randn(128)")
_add("addmm", "torch.addmm(z, x, y)", "torch.randn(128, 256)", "torch.randn(256, 64)", "torch.randn(64)")
_add("baddbmm", "torch.baddbmm(z, x, y)", X3, "torch.randn(4, 256, 32)", "torch.randn(4, 64, 32)")
_add("einsum_bhqd", "torch.einsum('bqhd,bkhd->bhqk', x, y)", "torch.randn(2, 32, 4, 16)", "torch.randn(2, 32, 4, 16)")
_add("einsum_bij", "torch.einsum('bij,jk->bik', x, y)", X3, "torch.randn(256, 32)")
_add("outer", "torch.outer(x, y)", "torch.randn(128)", "torch.randn(256)")
_add("cdist", "torch.cdist(x, y)", "torch.randn(2, 32, 16)", "torch.randn(2, 48, 16)")
_add("conv1d", "F.conv1d(x, y)", X3, "torch.randn(32, 64, 3)")
_add("conv2d", "F.conv2d(x, y, z, padding=1)", IMG, "torch.randn(32, 16, 3, 3)", "torch.randn(32)")
_add("conv2d_stride", "F.conv2d(x, y, stride=2, padding=1)", IMG, "torch.randn(32, 16, 3, 3)")
_add("conv2d_depthwise", "F.conv2d(x, y, padding=1, groups=16)", IMG, "torch.randn(16, 1, 3, 3)")
_add("conv2d_same", "F.conv2d(x, y, padding='same')", IMG, "torch.randn(32, 16, 3, 3)")
_add("conv_transpose2d", "F.conv_transpose2d(x, y, stride=2)", IMG, "torch.randn(16, 8, 2, 2)")
_add("max_pool2d", "F.max_pool2d(x, 2)", IMG)
_add("max_pool2d_pad", "F.max_pool2d(x, 3, 2, 1)", IMG)
_add("max_pool2d_ceil", "F.max_pool2d(x, 3, 2, ceil_mode=True)", IMG)
_add("avg_pool2d", "F.avg_pool2d(x, 2)", IMG)
_add("adaptive_avg_pool2d_1", "F.adaptive_avg_pool2d(x, 1)", IMG)
_add("adaptive_avg_pool2d_7", "F.adaptive_avg_pool2d(x, 7)", IMG)
_add("adaptive_max_pool2d", "F.adaptive_max_pool2d(x, 4)", IMG)
_add("adaptive_avg_pool1d", "F.adaptive_avg_pool1d(x, 4)", X3)
_add("layer_norm", "F.layer_norm(x, (256,), y, z)", X3, "torch.randn(256)", "torch.randn(256)")
_add("group_norm", "F.group_norm(x, 4, y, z)", IMG, "torch.randn(16)", "torch.randn(16)")
_add("rms_norm", "F.rms_norm(x, (256,), y)", X3, "torch.randn(256)")
_add("instance_norm", "F.instance_norm(x)", IMG)
_add("local_response_norm", "F.local_response_norm(x, 2)", IMG)
_add("dropout", "F.dropout(x, 0.1)")
_add("dropout2d", "F.dropout2d(x, 0.1)", IMG)
_add("dropout_zero", "F.dropout(x, 0.0) * 2.0")
_add("embedding", "F.embedding(z, x)", "torch.randn(1000, 64)", plain=("torch.zeros(4, 32, dtype=torch.int64)",))
_add("interpolate_nearest", "F.interpolate(x, scale_factor=2)", IMG)
_add("interpolate_bilinear", "F.interpolate(x, scale_factor=2, mode='bilinear', align_corners=False)", IMG)
_add("pixel_shuffle", "F.pixel_shuffle(x, 2)", IMG)
_add("unfold", "F.unfold(x, 3, padding=1)", IMG)
_add("fold", "F.fold(x, (32, 32), 2, stride=2)", "torch.randn(4, 64, 256)")
_add("grid_sample", "F.grid_sample(x, y, align_corners=False)", IMG, "torch.rand(4, 16, 16, 2)")
_add("sdpa", "F.scaled_dot_product_attention(x, x * 1.5, y)", "torch.randn(2, 4, 64, 32)", "torch.randn(2, 4, 64, 32)")
_add(
    "sdpa_causal",
    "F.scaled_dot_product_attention(x, y, y, is_causal=True)",
    "torch.randn(2, 4, 64, 32)",
    "torch.randn(2, 4, 64, 32)",
)
_add("mse_loss", "F.mse_loss(x, z)", X3, plain=(X3,))
_add("mse_loss_none", "F.mse_loss(x, z, reduction='none')", X3, plain=(X3,))
_add("l1_loss", "F.l1_loss(x, z)", X3, plain=(X3,))
_add("smooth_l1_loss", "F.smooth_l1_loss(x, z)", X3, plain=(X3,))
_add("bce_logits", "F.binary_cross_entropy_with_logits(x, z)", X3, plain=("torch.rand(4, 64, 256)",))
_add("bce", "F.binary_cross_entropy(torch.sigmoid(x), z)", X3, plain=("torch.rand(4, 64, 256)",))
_add("cross_entropy", "F.cross_entropy(x, z)", "torch.randn(128, 1000)", plain=("torch.zeros(128, dtype=torch.int64)",))
_add(
    "cross_entropy_smooth",
    "F.cross_entropy(x, z, label_smoothing=0.1)",
    "torch.randn(128, 1000)",
    plain=("torch.zeros(128, dtype=torch.int64)",),
)
_add(
    "nll_loss",
    "F.nll_loss(F.log_softmax(x, -1), z)",
    "torch.randn(128, 1000)",
    plain=("torch.zeros(128, dtype=torch.int64)",),
)
_add("kl_div", "F.kl_div(F.log_softmax(x, -1), z, reduction='batchmean')", X3, plain=("torch.rand(4, 64, 256)",))
_add("setitem", "fill(x)", X3)
_add("iadd", "accumulate(x, y)", X3, X3)
_add("attention_by_hand", "attend(x, 4)", X3)

HELPERS = """
def fill(x):
    buffer = torch.zeros(4, 64, 256)
    buffer[:, :32] = x[:, :32] * 2.0
    return buffer

def accumulate(x, y):
    out = x * 2.0
    out += y
    out *= 0.5
    return out

def attend(x, heads):
    b, t, c = x.shape
    q = x.view(b, t, heads, c // heads).transpose(1, 2)
    att = (q @ q.transpose(-2, -1)) * (1.0 / math.sqrt(q.size(-1)))
    att = F.softmax(att, dim=-1)
    y = att @ q
    return y.transpose(1, 2).contiguous().view(b, t, c)
"""


def expression_source(expression: str, inputs: list[str], plain: list[str]) -> str:
    """A case of one expression; the last plain input is ``z`` when there are plain ones."""
    names = [*"xyz"[: len(inputs)]]
    parameters = [*names]
    made = [f"{text}.requires_grad_()" for text in inputs]
    if plain:
        free = [n for n in "zyx" if n not in names]
        used = [n for n in "zyx" if n in expression.replace("exp", "") and n in free] or free
        parameters.append(used[0])
        made += plain[:1]
    return f"{HEAD}{HELPERS}\ndef model({', '.join(parameters)}):\n    return {expression}\n\ninputs = [{', '.join(made)}]\n"


MODULES: dict[str, tuple[str, str]] = {
    "mlp": ("nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Dropout(0.2), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))", "[torch.randn(64, 784)]"),
    "cnn": ("nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(inplace=True), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))", "[torch.randn(8, 3, 32, 32)]"),
    "batchnorm1d": ("nn.Sequential(nn.Linear(128, 256), nn.BatchNorm1d(256), nn.GELU())", "[torch.randn(64, 128)]"),
    "embedding_mean": ("nn.Sequential(nn.Embedding(5000, 128), nn.Linear(128, 64))", "[torch.zeros(32, 50, dtype=torch.int64)]"),
    "mha_need_weights": ("Pick(nn.MultiheadAttention(64, 4, batch_first=True))", "[torch.randn(4, 32, 64)]"),
    "encoder_layer": ("nn.TransformerEncoderLayer(64, 4, 128, batch_first=True, dropout=0.0)", "[torch.randn(4, 32, 64)]"),
    "encoder": ("nn.TransformerEncoder(nn.TransformerEncoderLayer(64, 4, 128, dropout=0.1, batch_first=True), 3)", "[torch.randn(4, 32, 64)]"),
    "encoder_seq_first": ("nn.TransformerEncoder(nn.TransformerEncoderLayer(64, 4, 128, activation='gelu', norm_first=True, dropout=0.0), 2)", "[torch.randn(32, 4, 64)]"),
    "decoder": ("nn.TransformerDecoder(nn.TransformerDecoderLayer(64, 4, 128, dropout=0.0, batch_first=True), 2)", "[torch.randn(4, 32, 64), torch.randn(4, 16, 64)]"),
    "transformer": ("nn.Transformer(64, 4, 2, 2, 128, dropout=0.0, batch_first=True)", "[torch.randn(4, 32, 64), torch.randn(4, 16, 64)]"),
    "lstm": ("Pick(nn.LSTM(32, 64, 2, batch_first=True))", "[torch.randn(8, 20, 32)]"),
    "gru": ("Pick(nn.GRU(32, 64, batch_first=True, bidirectional=True))", "[torch.randn(8, 20, 32)]"),
    "rnn": ("Pick(nn.RNN(32, 64, batch_first=True))", "[torch.randn(8, 20, 32)]"),
    "lstm_cell": ("Pick(nn.LSTMCell(32, 64))", "[torch.randn(8, 32)]"),
    "gru_cell": ("nn.GRUCell(32, 64)", "[torch.randn(8, 32)]"),
    "groupnorm": ("nn.Sequential(nn.Conv2d(3, 16, 3), nn.GroupNorm(4, 16), nn.SiLU(), nn.Conv2d(16, 16, 3, groups=16))", "[torch.randn(4, 3, 32, 32)]"),
    "upsample": ("nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.Upsample(scale_factor=2, mode='bilinear'), nn.ConvTranspose2d(16, 8, 4, 2, 1), nn.PixelShuffle(2))", "[torch.randn(4, 3, 16, 16)]"),
    "residual_block": ("Block()", "[torch.randn(4, 16, 32, 32)]"),
    "gpt_block": ("Gpt()", "[torch.randn(2, 64, 128)]"),
    "checkpointed": ("Checkpointed()", "[torch.randn(16, 256)]"),
    "tied": ("Tied()", "[torch.zeros(4, 16, dtype=torch.int64)]"),
    "embedding_bag": ("nn.EmbeddingBag(1000, 64, mode='mean')", "[torch.zeros(16, 10, dtype=torch.int64)]"),
    "frozen": ("Frozen()", "[torch.randn(16, 128)]"),
}  # fmt: skip

MODULE_HELPERS = """
class Pick(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner
    def forward(self, x):
        return self.inner(x, x, x)[0] if isinstance(self.inner, nn.MultiheadAttention) else self.inner(x)[0]

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(16, 16, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        self.conv2 = nn.Conv2d(16, 16, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(16)
        self.relu = nn.ReLU(inplace=True)
    def forward(self, x):
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += x
        return self.relu(out)

class Gpt(nn.Module):
    def __init__(self, c=128, heads=4):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(c), nn.LayerNorm(c)
        self.qkv = nn.Linear(c, 3 * c)
        self.proj = nn.Linear(c, c)
        self.mlp = nn.Sequential(nn.Linear(c, 4 * c), nn.GELU(), nn.Linear(4 * c, c))
        self.heads = heads
    def forward(self, x):
        b, t, c = x.size()
        q, k, v = self.qkv(self.ln1(x)).split(c, dim=2)
        q, k, v = (s.view(b, t, self.heads, c // self.heads).transpose(1, 2) for s in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).contiguous().view(b, t, c))
        return x + self.mlp(self.ln2(x))

class Checkpointed(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([nn.Sequential(nn.Linear(256, 1024), nn.GELU(), nn.Linear(1024, 256)) for _ in range(4)])
    def forward(self, x):
        from torch.utils.checkpoint import checkpoint
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False)
        return x

class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(500, 64)
        self.body = nn.Linear(64, 64)
        self.head = nn.Linear(64, 500, bias=False)
        self.head.weight = self.emb.weight
    def forward(self, i):
        return self.head(torch.tanh(self.body(self.emb(i))))

class Frozen(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 128))
        for p in self.backbone.parameters():
            p.requires_grad = False
        self.head = nn.Linear(128, 10)
    def forward(self, x):
        return self.head(self.backbone(x))
"""


def sources() -> dict[str, str]:
    """Every case's source by name."""
    found = {name: expression_source(*spec) for name, spec in EXPRESSIONS.items()}
    for name, (build, inputs) in MODULES.items():
        found[f"module_{name}"] = f"{HEAD}{MODULE_HELPERS}\nmodel = {build}\ninputs = {inputs}\n"
    return found
