"""PaddlePaddle cases: each source defines ``model`` (called with ``*inputs``) and ``inputs``."""

# ruff: noqa: E501 - a case is easier to read on one line

HEAD = """
import paddle, math
import paddle.nn as nn
import paddle.nn.functional as F

def grad(x):
    x.stop_gradient = False
    return x
"""

X3 = "paddle.randn([4, 64, 256])"
IMG = "paddle.randn([4, 16, 32, 32])"

EXPRESSIONS: dict[str, tuple[str, list[str], list[str]]] = {}


def _add(name: str, expression: str, *inputs: str, plain: tuple[str, ...] = ()) -> None:
    EXPRESSIONS[name] = (expression, list(inputs) or [X3], list(plain))


for _fn in (
    "relu", "relu6", "elu", "selu", "celu", "gelu", "silu", "swish", "mish", "hardswish", "hardsigmoid", "hardtanh", "leaky_relu", "softplus",
    "softsign", "softshrink", "hardshrink", "tanhshrink", "log_sigmoid",
):  # fmt: skip
    _add(_fn, f"F.{_fn}(x)")
for _fn in (
    "exp", "log", "log2", "log10", "log1p", "expm1", "sqrt", "rsqrt", "square", "abs", "sin", "cos", "tan", "tanh", "erf",
    "reciprocal", "neg", "sign", "floor", "round", "atan", "sinh", "cosh",
):  # fmt: skip
    _add(_fn, f"paddle.{_fn}(x)")
_add("sigmoid", "F.sigmoid(x)")
for _name, _text in {
    "relu_twice": "F.relu(F.relu(x) * 2.0)", "softmax": "F.softmax(x, axis=-1)", "log_softmax": "F.log_softmax(x, axis=-1)", "glu": "F.glu(x)",
    "add_number": "x + 1.0", "rsub_number": "1.0 - x", "mul_number": "x * 2.0", "div_number": "x / 2.0", "rdiv_number": "1.0 / x", "pow2": "x ** 2", "scale_chain": "(x * 2.0 + 1.0) / 3.0",
    "clip": "paddle.clip(x, -1, 1)", "sum": "x.sum()", "sum_axis": "x.sum(axis=1)", "mean": "x.mean()", "mean_axis": "x.mean(axis=[1, 2])",
    "max": "x.max()", "max_axis": "x.max(axis=1)", "var": "x.var(axis=1)", "std": "x.std(axis=1)", "norm": "paddle.norm(x, axis=1)", "logsumexp": "paddle.logsumexp(x, axis=1)",
    "cumsum": "paddle.cumsum(x, axis=1)", "prod": "x.prod(axis=1)", "normalize": "F.normalize(x, axis=-1)", "reshape": "x.reshape([4, -1]) * 2.0",
    "transpose_mul": "x.transpose([0, 2, 1]) * 2.0", "transpose_reshape": "x.transpose([1, 0, 2]).reshape([64, -1]) * 1.5",
    "split": "paddle.split(x, 4, axis=1)[0] * 2.0 + paddle.split(x, 4, axis=1)[1]", "chunk": "paddle.chunk(x, 2, axis=-1)[0] * paddle.chunk(x, 2, axis=-1)[1]",
    "unbind": "x.unbind(1)[0] + x.unbind(1)[1]", "tile": "paddle.tile(x, [2, 1, 1])", "slice": "x[:, :32] * 2.0", "select": "x[:, 0] * 2.0", "slice_step": "x[:, 0::2, :] + x[:, 1::2, :]",
    "flip": "paddle.flip(x, axis=1)", "roll": "paddle.roll(x, 1, 1)", "tril": "paddle.tril(x)", "pad": "F.pad(x, [1, 1], data_format='NCL')", "topk": "paddle.topk(x, 8, axis=-1)[0]", "sort": "paddle.sort(x, axis=-1)",
    "clone": "x.clone()", "cast_double": "x.astype('float64').astype('float32')", "dropout": "F.dropout(x, 0.1)", "dropout_zero": "F.dropout(x, 0.0) * 2.0", "residual": "(F.gelu(x) + x) * 0.5 + x",
    "chain": "F.sigmoid(F.relu(x) * 3.0) + paddle.tanh(x)", "squeeze": "paddle.unsqueeze(x, 1).squeeze(1) * 2.0", "flatten": "paddle.flatten(x, 1) * 2.0", "masked": "paddle.where(x > 0, x, paddle.zeros_like(x))",
    "stack_self": "paddle.stack([x, x * 2.0], axis=1)", "setitem": "fill(x)", "attention_by_hand": "attend(x, 4)",
}.items():  # fmt: skip
    _add(_name, _text)
_add("prelu", "F.prelu(x, y)", X3, "paddle.randn([64])")
_add("add", "x + y", X3, X3)
_add("add_broadcast", "x + y", X3, "paddle.randn([256])")
_add("sub", "x - y", X3, X3)
_add("mul", "x * y", X3, X3)
_add("mul_plain", "x * z", X3, plain=(X3,))
_add("mul_broadcast", "x * y", X3, "paddle.randn([256])")
_add("div", "x / y", X3, X3)
_add("maximum", "paddle.maximum(x, y)", X3, X3)
_add("where", "paddle.where(x > 0, x, y)", X3, X3)
_add("iadd", "accumulate(x, y)", X3, X3)
_add("concat", "paddle.concat([x, y], axis=1)", X3, X3)
_add("concat_last", "paddle.concat([x, y], axis=-1) * 2.0", X3, X3)
_add("stack", "paddle.stack([x, y], axis=1)", X3, X3)
_add("expand", "y.expand([4, 64, 256]) * x", X3, "paddle.randn([1, 64, 256])")
_add("index", "x[:, z]", X3, plain=("paddle.arange(16)",))
_add("gather", "paddle.gather(x, z, axis=1)", X3, plain=("paddle.arange(16)",))
_add("index_select", "paddle.index_select(x, z, axis=1)", X3, plain=("paddle.arange(16)",))
_add("take_along_axis", "paddle.take_along_axis(x, z, 1)", X3, plain=("paddle.zeros([4, 8, 256], dtype='int64')",))
_add("matmul2d", "paddle.matmul(x, y)", "paddle.randn([128, 256])", "paddle.randn([256, 64])")
_add("matmul3d_2d", "paddle.matmul(x, y)", X3, "paddle.randn([256, 128])")
_add("bmm", "paddle.bmm(x, y)", X3, "paddle.randn([4, 256, 32])")
_add("matmul4d", "paddle.matmul(x, y)", "paddle.randn([2, 4, 64, 32])", "paddle.randn([2, 4, 32, 64])")
_add(
    "matmul_transpose_y",
    "paddle.matmul(x, y, transpose_y=True)",
    "paddle.randn([2, 4, 64, 32])",
    "paddle.randn([2, 4, 64, 32])",
)
_add(
    "matmul_permuted",
    "paddle.matmul(x.reshape([4, 64, 4, 64]).transpose([0, 2, 1, 3]), y.reshape([4, 64, 4, 64]).transpose([0, 2, 3, 1]))",
    X3,
    X3,
)
_add("linear", "F.linear(x, y)", X3, "paddle.randn([256, 128])")
_add("linear_bias", "F.linear(x, y, z0)", X3, "paddle.randn([256, 128])", "paddle.randn([128])")
_add(
    "einsum_bhqd",
    "paddle.einsum('bqhd,bkhd->bhqk', x, y)",
    "paddle.randn([2, 32, 4, 16])",
    "paddle.randn([2, 32, 4, 16])",
)
_add("conv1d", "F.conv1d(x, y)", X3, "paddle.randn([32, 64, 3])")
_add("conv2d", "F.conv2d(x, y, z0, padding=1)", IMG, "paddle.randn([32, 16, 3, 3])", "paddle.randn([32])")
_add("conv2d_1x1", "F.conv2d(x, y)", IMG, "paddle.randn([32, 16, 1, 1])")
_add("conv2d_stride", "F.conv2d(x, y, stride=2, padding=1)", IMG, "paddle.randn([32, 16, 3, 3])")
_add("conv2d_depthwise", "F.conv2d(x, y, padding=1, groups=16)", IMG, "paddle.randn([16, 1, 3, 3])")
_add("conv2d_same", "F.conv2d(x, y, padding='SAME')", IMG, "paddle.randn([32, 16, 3, 3])")
_add("conv2d_transpose", "F.conv2d_transpose(x, y, stride=2)", IMG, "paddle.randn([16, 8, 2, 2])")
for _name, _text in {
    "max_pool2d": "F.max_pool2d(x, 2)", "max_pool2d_pad": "F.max_pool2d(x, 3, 2, 1)", "max_pool2d_mask": "F.max_pool2d(x, 2, return_mask=True)[0]", "max_pool2d_ceil": "F.max_pool2d(x, 3, 2, ceil_mode=True)",
    "avg_pool2d": "F.avg_pool2d(x, 2)", "adaptive_avg_pool2d_1": "F.adaptive_avg_pool2d(x, 1)", "adaptive_avg_pool2d_7": "F.adaptive_avg_pool2d(x, 7)", "adaptive_max_pool2d": "F.adaptive_max_pool2d(x, 4)",
    "instance_norm": "F.instance_norm(x)", "interpolate_nearest": "F.interpolate(x, scale_factor=2)", "interpolate_bilinear": "F.interpolate(x, scale_factor=2, mode='bilinear')", "pixel_shuffle": "F.pixel_shuffle(x, 2)",
    "unfold": "F.unfold(x, 3, paddings=1)", "dropout2d": "F.dropout2d(x, 0.1)", "pad2d": "F.pad(x, [1, 1, 1, 1])", "local_response_norm": "F.local_response_norm(x, 2)",
}.items():  # fmt: skip
    _add(_name, _text, IMG)
_add("layer_norm", "F.layer_norm(x, [256], y, z0)", X3, "paddle.randn([256])", "paddle.randn([256])")
_add("group_norm", "F.group_norm(x, 4, weight=y, bias=z0)", IMG, "paddle.randn([16])", "paddle.randn([16])")
_add("embedding", "F.embedding(z, x)", "paddle.randn([1000, 64])", plain=("paddle.zeros([4, 32], dtype='int64')",))
_add("grid_sample", "F.grid_sample(x, y)", IMG, "paddle.rand([4, 16, 16, 2])")
_add("sdpa", "F.scaled_dot_product_attention(x, y, y)", "paddle.randn([2, 64, 4, 32])", "paddle.randn([2, 64, 4, 32])")
_add("mse_loss", "F.mse_loss(x, z)", X3, plain=(X3,))
_add("l1_loss", "F.l1_loss(x, z)", X3, plain=(X3,))
_add("smooth_l1_loss", "F.smooth_l1_loss(x, z)", X3, plain=(X3,))
_add("bce_logits", "F.binary_cross_entropy_with_logits(x, z)", X3, plain=("paddle.rand([4, 64, 256])",))
_add("bce", "F.binary_cross_entropy(F.sigmoid(x), z)", X3, plain=("paddle.rand([4, 64, 256])",))
_add(
    "cross_entropy", "F.cross_entropy(x, z)", "paddle.randn([128, 1000])", plain=("paddle.zeros([128], dtype='int64')",)
)
_add(
    "cross_entropy_soft",
    "F.cross_entropy(x, z, soft_label=True)",
    "paddle.randn([128, 1000])",
    plain=("paddle.rand([128, 1000])",),
)
_add(
    "nll_loss",
    "F.nll_loss(F.log_softmax(x, -1), z)",
    "paddle.randn([128, 1000])",
    plain=("paddle.zeros([128], dtype='int64')",),
)
_add("kl_div", "F.kl_div(F.log_softmax(x, -1), z)", X3, plain=("paddle.rand([4, 64, 256])",))

HELPERS = """
def fill(x):
    buffer = paddle.zeros([4, 64, 256])
    buffer[:, :32] = x[:, :32] * 2.0
    return buffer

def accumulate(x, y):
    out = x * 2.0
    out += y
    out *= 0.5
    return out

def attend(x, heads):
    b, t, c = x.shape
    q = x.reshape([b, t, heads, c // heads]).transpose([0, 2, 1, 3])
    att = paddle.matmul(q, q, transpose_y=True) * (1.0 / math.sqrt(q.shape[-1]))
    att = F.softmax(att, axis=-1)
    y = paddle.matmul(att, q)
    return y.transpose([0, 2, 1, 3]).reshape([b, t, c])
"""


def expression_source(expression: str, inputs: list[str], plain: list[str]) -> str:
    """A case of one expression; ``z`` is the input that needs no gradient, ``z0`` a third one that does."""
    names = ["x", "y", "z0"][: len(inputs)]
    made = [f"grad({text})" for text in inputs]
    if plain:
        names.append("z")
        made += plain[:1]
    return f"{HEAD}{HELPERS}\ndef model({', '.join(names)}):\n    return {expression}\n\ninputs = [{', '.join(made)}]\n"


MODULES: dict[str, tuple[str, str]] = {
    "mlp": ("nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Dropout(0.2), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))", "[paddle.randn([64, 784])]"),
    "cnn": ("nn.Sequential(nn.Conv2D(3, 32, 3, padding=1), nn.BatchNorm2D(32), nn.ReLU(), nn.MaxPool2D(2), nn.Conv2D(32, 64, 3, padding=1), nn.BatchNorm2D(64), nn.ReLU(), nn.AdaptiveAvgPool2D(1), nn.Flatten(), nn.Linear(64, 10))", "[paddle.randn([8, 3, 32, 32])]"),
    "batchnorm1d": ("nn.Sequential(nn.Linear(128, 256), nn.BatchNorm1D(256), nn.GELU())", "[paddle.randn([64, 128])]"),
    "bn_relu": ("nn.Sequential(nn.BatchNorm2D(16), nn.ReLU(), nn.BatchNorm2D(16), nn.ReLU())", "[paddle.randn([4, 16, 32, 32])]"),
    "embedding_mean": ("nn.Sequential(nn.Embedding(5000, 128), nn.Linear(128, 64))", "[paddle.zeros([32, 50], dtype='int64')]"),
    "mha": ("nn.MultiHeadAttention(64, 4)", "[paddle.randn([4, 32, 64])]"),
    "encoder_layer": ("nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0)", "[paddle.randn([4, 32, 64])]"),
    "encoder": ("nn.TransformerEncoder(nn.TransformerEncoderLayer(64, 4, 128, dropout=0.1), 3)", "[paddle.randn([4, 32, 64])]"),
    "encoder_norm_first": ("nn.TransformerEncoder(nn.TransformerEncoderLayer(64, 4, 128, activation='gelu', normalize_before=True, dropout=0.0), 2)", "[paddle.randn([4, 32, 64])]"),
    "decoder": ("nn.TransformerDecoder(nn.TransformerDecoderLayer(64, 4, 128, dropout=0.0), 2)", "[paddle.randn([4, 32, 64]), paddle.randn([4, 16, 64])]"),
    "transformer": ("nn.Transformer(64, 4, 2, 2, 128, dropout=0.0)", "[paddle.randn([4, 32, 64]), paddle.randn([4, 16, 64])]"),
    "lstm": ("Pick(nn.LSTM(32, 64, 2))", "[paddle.randn([8, 20, 32])]"),
    "gru": ("Pick(nn.GRU(32, 64, direction='bidirect'))", "[paddle.randn([8, 20, 32])]"),
    "rnn": ("Pick(nn.SimpleRNN(32, 64))", "[paddle.randn([8, 20, 32])]"),
    "lstm_cell": ("Pick(nn.LSTMCell(32, 64))", "[paddle.randn([8, 32])]"),
    "gru_cell": ("Pick(nn.GRUCell(32, 64))", "[paddle.randn([8, 32])]"),
    "groupnorm": ("nn.Sequential(nn.Conv2D(3, 16, 3), nn.GroupNorm(4, 16), nn.Silu(), nn.Conv2D(16, 16, 3, groups=16))", "[paddle.randn([4, 3, 32, 32])]"),
    "upsample": ("nn.Sequential(nn.Conv2D(3, 16, 3, padding=1), nn.Upsample(scale_factor=2, mode='bilinear'), nn.Conv2DTranspose(16, 8, 4, 2, 1), nn.PixelShuffle(2))", "[paddle.randn([4, 3, 16, 16])]"),
    "residual_block": ("Block()", "[paddle.randn([4, 16, 32, 32])]"),
    "tied": ("Tied()", "[paddle.zeros([4, 16], dtype='int64')]"),
    "frozen": ("Frozen()", "[paddle.randn([16, 128])]"),
    "recompute": ("Recompute()", "[grad(paddle.randn([16, 256]))]"),
    "attrs": ("nn.Sequential(nn.Linear(64, 32, weight_attr=paddle.ParamAttr(trainable=False), bias_attr=False), nn.LayerNorm(32, weight_attr=False), nn.Conv1D(16, 8, 1, bias_attr=False))", "[paddle.randn([4, 16, 64])]"),
    "instance_norm": ("nn.Sequential(nn.Conv2D(3, 8, 3), nn.InstanceNorm2D(8), nn.LeakyReLU(0.2), nn.SyncBatchNorm(8), nn.Hardswish())", "[paddle.randn([2, 3, 16, 16])]"),
}  # fmt: skip

MODULE_HELPERS = """
class Pick(nn.Layer):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner
    def forward(self, x):
        return self.inner(x)[0]

class Block(nn.Layer):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2D(16, 16, 3, padding=1, bias_attr=False)
        self.bn1 = nn.BatchNorm2D(16)
        self.conv2 = nn.Conv2D(16, 16, 3, padding=1, bias_attr=False)
        self.bn2 = nn.BatchNorm2D(16)
        self.relu = nn.ReLU()
    def forward(self, x):
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += x
        return self.relu(out)

class Tied(nn.Layer):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(500, 64)
        self.body = nn.Linear(64, 64)
    def forward(self, i):
        h = paddle.tanh(self.body(self.emb(i)))
        return paddle.matmul(h, self.emb.weight, transpose_y=True)

class Frozen(nn.Layer):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 128))
        for p in self.backbone.parameters():
            p.stop_gradient = True
        self.head = nn.Linear(128, 10)
    def forward(self, x):
        return self.head(self.backbone(x))

class Recompute(nn.Layer):
    def __init__(self):
        super().__init__()
        self.blocks = nn.LayerList([nn.Sequential(nn.Linear(256, 1024), nn.GELU(), nn.Linear(1024, 256)) for _ in range(4)])
    def forward(self, x):
        from paddle.distributed.fleet.utils import recompute
        for block in self.blocks:
            x = recompute(block, x)
        return x
"""


def sources() -> dict[str, str]:
    """Every case's source by name."""
    found = {name: expression_source(*spec) for name, spec in EXPRESSIONS.items()}
    for name, (build, inputs) in MODULES.items():
        found[f"module_{name}"] = f"{HEAD}{MODULE_HELPERS}\nmodel = {build}\ninputs = {inputs}\n"
    return found
