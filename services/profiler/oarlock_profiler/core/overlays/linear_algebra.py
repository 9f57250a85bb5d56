"""Matrix products and what is built of them."""

from __future__ import annotations

from typing import Any

from oarlock_profiler.core.engine.shapes import ShapeError, axis_of, broadcast, numel
from oarlock_profiler.core.engine.shapes import matmul as matmul_shape
from oarlock_profiler.core.engine.strides import as_view
from oarlock_profiler.core.engine.tensor import Tensor
from oarlock_profiler.core.interpreter.values import Context, Value
from oarlock_profiler.core.overlays.calling import Unknowable, engine_of, integer, integers, names, operator, tensor
from oarlock_profiler.core.overlays.elementwise import binary
from oarlock_profiler.core.overlays.shaping import expand, is_contiguous, permute, reshaped, view

LIBRARIES = ("torch", "paddle")


def product_flops(a: tuple[int, ...], b: tuple[int, ...], out: tuple[int, ...]) -> int:
    """``2·M·N·K`` of a batched product."""
    inner = a[-1]
    del b
    return 2 * numel(out) * inner


def matmul(context: Context, left: Value, right: Value, *, name: str = "matmul") -> Tensor:
    """``left @ right`` with broadcasting, keeping both for backward.

    PyTorch folds a batch into rows when the right side is a matrix, and otherwise expands and copies what is not laid
    out as a batch of matrices (``at::native::matmul``); PaddlePaddle's kernel broadcasts by itself.
    """
    engine = engine_of(context)
    a, b = tensor(context, left), tensor(context, right)
    shape = matmul_shape(a.shape or (), b.shape or ())
    flops = product_flops(a.shape or (), b.shape or (), shape)
    if engine.framework == "torch" and len(a.shape or ()) > 2 and len(b.shape or ()) > 2:
        policy = engine.autocast
        wanted = policy.wanted("matmul") if policy is not None else None
        if wanted not in (None, "promote") and a.device != "cpu":
            a, b = engine.cast(a, str(wanted)), engine.cast(b, str(wanted))
        batch = shape[:-2]
        a3 = _batched(context, a, batch)
        b3 = _batched(context, b, batch)
        out = engine.apply(
            "bmm",
            [a3, b3],
            (numel(batch), *shape[-2:]),
            saved=[(a3, b3), (b3, a3)],
            flops=flops,
            matmul=True,
            kernel="matmul",
        )
        return view(context, out, shape, "reshape") if len(shape) != 3 else out
    if engine.framework == "torch" and len(a.shape or ()) > 2 and len(b.shape or ()) <= 2 and not is_contiguous(a):
        a = reshaped(context, a, (numel((a.shape or ())[:-1]), (a.shape or ())[-1]))
        out = engine.apply(
            name,
            [a, b],
            matmul_shape(a.shape or (), b.shape or ()),
            saved=[(a, b), (b, a)],
            flops=flops,
            matmul=True,
            kernel="matmul",
        )
        return view(context, out, shape, "reshape")
    # PaddlePaddle keeps both sides once either learns.
    saved: list[Any] = [a, b] if engine.framework == "paddle" else [(a, b), (b, a)]
    return engine.apply(name, [a, b], shape, saved=saved, flops=flops, matmul=True, kernel="matmul")


def _batched(context: Context, x: Tensor, batch: tuple[int, ...]) -> Tensor:
    shape = x.shape or ()
    if shape[:-2] != batch:
        x = expand(context, x, [*batch, *shape[-2:]])
    return reshaped(context, x, (numel(batch), *shape[-2:])) if len(batch) != 1 else x


@operator(
    [*names("matmul", "mm", "bmm", "mv"), "paddle.linalg.matmul", "torch.linalg.matmul", "paddle.fluid.layers.matmul"],
    rename={
        "x": "input",
        "y": "other",
        "mat1": "input",
        "mat2": "other",
        "tensor1": "input",
        "tensor2": "other",
        "self": "input",
        "vec": "other",
    },
)
def matmul_(
    context: Context,
    input: Value,
    other: Value,
    transpose_x: Value = False,
    transpose_y: Value = False,
    **kwargs: Value,
) -> Value:
    """Matrix product."""
    del kwargs
    a, b = tensor(context, input), tensor(context, other)
    if context.engine.framework == "paddle" and (transpose_x is True or transpose_y is True):
        return paddle_product(context, a, b, transpose_x is True, transpose_y is True)
    return matmul(context, a, b)


def _turned(shape: tuple[int, ...], turn: bool) -> tuple[int, ...]:
    return (*shape[:-2], shape[-1], shape[-2]) if turn and len(shape) > 1 else shape


def paddle_product(context: Context, a: Tensor, b: Tensor, turn_a: bool, turn_b: bool) -> Tensor:
    left, right = _turned(a.shape or (), turn_a), _turned(b.shape or (), turn_b)
    shape = matmul_shape(left, right)
    return engine_of(context).apply(
        "matmul",
        [a, b],
        shape,
        saved=[a, b],
        flops=product_flops(left, right, shape),
        matmul=True,
        kernel="matmul",
    )


@operator([f"{f}.Tensor.{d}" for f in ("torch", "paddle") for d in ("__matmul__",)])
def at_sign(context: Context, input: Value, other: Value) -> Value:
    """``a @ b``."""
    return matmul(context, input, other)


@operator([f"{f}.Tensor.__rmatmul__" for f in ("torch", "paddle")])
def reflected_at_sign(context: Context, input: Value, other: Value) -> Value:
    """``b @ a``."""
    return matmul(context, other, input)


def linear(context: Context, input: Value, weight: Value, bias: Value, *, transposed: bool) -> Tensor:
    """``x · W (+ b)``; ``transposed``: the weight is ``(out, in)`` as PyTorch stores it."""
    engine = engine_of(context)
    x, w = tensor(context, input), tensor(context, weight)
    shape, wide = x.shape or (), w.shape or ()
    inner, out_features = (wide[-1], wide[0] if len(wide) > 1 else 0) if transposed else (wide[0], wide[-1])
    if not shape or shape[-1] != inner:
        raise ShapeError(f"linear of {list(shape)} with a weight of {list(wide)}")
    out = (*shape[:-1], out_features) if len(wide) > 1 else shape[:-1]
    flops = 2 * numel(shape) * max(out_features, 1)
    if engine.framework == "torch" and not is_contiguous(x) and len(shape) > 2:
        x = reshaped(context, x, (numel(shape[:-1]), inner)) if bias is not None else x
    inputs: list[Tensor] = [x, w]
    if isinstance(bias, Tensor):
        inputs.append(bias)
    if engine.framework == "paddle":
        return _paddle_linear(context, x, w, bias, out, flops)
    made = engine.apply(
        "linear",
        inputs,
        (*(x.shape or ())[:-1], *out[len(shape) - 1 :]),
        saved=[(x, w), (w, x)],
        flops=flops,
        matmul=True,
    )
    return view(context, made, out, "reshape") if made.shape != out else made


def _paddle_linear(context: Context, x: Tensor, w: Tensor, bias: Value, out: tuple[int, ...], flops: int) -> Tensor:
    engine = engine_of(context)
    if not isinstance(bias, Tensor):
        return engine.apply("linear", [x, w], out, saved=[x, w], flops=flops, matmul=True, kernel="matmul")
    product = engine.apply("linear", [x, w], out, saved=[x, w], flops=flops, matmul=True, kernel="matmul")
    return binary(context, "add", product, bias)  # type: ignore[no-any-return]


@operator(["torch.nn.functional.linear", "torch._C._nn.linear"], rename={})
def torch_linear(context: Context, input: Value, weight: Value, bias: Value = None) -> Value:
    """``x · Wᵀ + b``."""
    return linear(context, input, weight, bias, transposed=True)


@operator(["paddle.nn.functional.linear", "paddle.incubate.nn.functional.fused_linear"], rename={"input": "x"})
def paddle_linear(
    context: Context, x: Value, weight: Value, bias: Value = None, *args: Value, **kwargs: Value
) -> Value:
    """``x · W + b``."""
    del args, kwargs
    return linear(context, x, weight, bias, transposed=False)


@operator(
    [*names("addmm", "baddbmm", "addmv", "addbmm"), *names("addmm_", "baddbmm_")],
    rename={"mat1": "x", "mat2": "y", "batch1": "x", "batch2": "y", "vec": "y", "mat": "x"},
)
def addmm(context: Context, input: Value, x: Value, y: Value, beta: Value = 1, alpha: Value = 1) -> Value:
    """``β·input + α·(x @ y)``."""
    del beta, alpha
    engine = engine_of(context)
    base, a, b = tensor(context, input), tensor(context, x), tensor(context, y)
    shape = matmul_shape(a.shape or (), b.shape or ())
    shape = broadcast(shape, base.shape or ())
    flops = product_flops(a.shape or (), b.shape or (), shape)
    same = base.shape == shape
    return engine.apply(
        "addmm", [a, b, base], shape, saved=[(a, b), (b, a)], flops=flops, matmul=True,
        grad=("fresh", "fresh", "alias" if same else "fresh"),
    )  # fmt: skip


@operator(
    [*names("dot", "inner", "vdot"), "torch.linalg.vecdot"], rename={"x": "input", "y": "other", "tensor": "other"}
)
def dot(context: Context, input: Value, other: Value, **kwargs: Value) -> Value:
    """Inner product."""
    del kwargs
    a, b = tensor(context, input), tensor(context, other)
    shape = broadcast((a.shape or ())[:-1], (b.shape or ())[:-1]) if len(a.shape or ()) > 1 else ()
    return engine_of(context).apply("dot", [a, b], shape, saved=[(a, b), (b, a)])


@operator([*names("outer", "ger")], rename={"x": "input", "y": "other", "vec2": "other"})
def outer(context: Context, input: Value, other: Value) -> Value:
    """Outer product."""
    a, b = tensor(context, input), tensor(context, other)
    return engine_of(context).apply(
        "multiply", [a, b], (numel(a.shape or ()), numel(b.shape or ())), saved=[(a, b), (b, a)]
    )


@operator([*names("kron")], rename={"x": "input", "y": "other"})
def kron(context: Context, input: Value, other: Value) -> Value:
    """Kronecker product."""
    a, b = tensor(context, input), tensor(context, other)
    rank = max(len(a.shape or ()), len(b.shape or ()))
    left = (1,) * (rank - len(a.shape or ())) + (a.shape or ())
    right = (1,) * (rank - len(b.shape or ())) + (b.shape or ())
    return engine_of(context).apply(
        "kron", [a, b], tuple(p * q for p, q in zip(left, right, strict=True)), saved=[a, b]
    )


@operator([*names("cross")], rename={"x": "input", "y": "other"})
def cross(context: Context, input: Value, other: Value, axis: Value = None, **kwargs: Value) -> Value:
    """Vector product."""
    del axis, kwargs
    a, b = tensor(context, input), tensor(context, other)
    return engine_of(context).apply("cross", [a, b], broadcast(a.shape or (), b.shape or ()), saved=[(a, b), (b, a)])


@operator(["torch.tensordot", "paddle.tensordot"], rename={"x": "a", "y": "b", "axes": "dims"})
def tensordot(context: Context, a: Value, b: Value, dims: Value = 2) -> Value:
    """Contraction of several axes."""
    x, y = tensor(context, a), tensor(context, b)
    left, right = x.shape or (), y.shape or ()
    if isinstance(dims, int):
        first, second = list(range(len(left) - dims, len(left))), list(range(dims))
    else:
        first, second = (
            [axis_of(i, len(left)) for i in integers(dims[0])],
            [axis_of(i, len(right)) for i in integers(dims[1])],
        )
    inner = numel(left[i] for i in first)
    out = (*(s for i, s in enumerate(left) if i not in first), *(s for i, s in enumerate(right) if i not in second))
    return engine_of(context).apply(
        "tensordot", [x, y], out, saved=[(x, y), (y, x)], flops=2 * numel(out) * inner, matmul=True, kernel="matmul"
    )


@operator([*names("einsum", method=False), "torch.functional.einsum"], rename={})
def einsum(context: Context, equation: Value, *operands: Value) -> Value:
    """Any product by index letters, as a chain of matrix products from the left."""
    items = list(operands[0]) if len(operands) == 1 and isinstance(operands[0], (list, tuple)) else list(operands)
    if not isinstance(equation, str):
        raise Unknowable("the equation of einsum is not known")
    tensors = [tensor(context, t) for t in items]
    left, _, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(tensors):
        raise ShapeError(f"einsum {equation} with {len(tensors)} operands")
    extents: dict[str, int] = {}
    spelled: list[str] = []
    for term, t in zip(terms, tensors, strict=True):
        dims = t.shape or ()
        if "..." in term:
            extra = len(dims) - (len(term) - 3)
            term = term.replace("...", "".join(chr(ord("A") + 25 - i) for i in range(extra, 0, -1)))
            if extra:
                right_letters = "".join(chr(ord("A") + 25 - i) for i in range(extra, 0, -1))
                right = right.replace("...", right_letters)
        if len(term) != len(dims):
            raise ShapeError(f"einsum {equation}: {list(dims)} does not match {term}")
        spelled.append(term)
        for letter, size in zip(term, dims, strict=True):
            if extents.get(letter, 1) not in (1, size) and size != 1:
                raise ShapeError(f"einsum {equation}: {letter} is both {extents[letter]} and {size}")
            extents[letter] = max(extents.get(letter, 1), size)
    right = right.replace("...", "")
    if "->" not in equation:
        joined = "".join(spelled)
        right = "".join(sorted(letter for letter in set(joined) if joined.count(letter) == 1))
    return _contract(context, spelled, tensors, right, extents)


def _contract(context: Context, terms: list[str], tensors: list[Tensor], right: str, extents: dict[str, int]) -> Tensor:
    engine = engine_of(context)
    current, term = tensors[0], terms[0]
    if len(tensors) == 1:
        return engine.apply(
            "einsum",
            [current],
            tuple(extents[c] for c in right),
            current.dtype,
            grad="alias" if set(term) == set(right) else "fresh",
        )
    for index in range(1, len(tensors)):
        other, other_term = tensors[index], terms[index]
        later = set("".join(terms[index + 1 :])) | set(right)
        kept = [c for c in dict.fromkeys(term + other_term) if c in later]
        if index == len(tensors) - 1:
            kept = list(right)
        shape = tuple(extents[c] for c in kept)
        every = set(term) | set(other_term)
        flops = 2 * numel(extents[c] for c in every)
        contracted = [c for c in every if c not in kept]
        if contracted:
            current = _laid_out(context, current, term, kept, other_term)
            other = _laid_out(context, other, other_term, kept, term)
        current = engine.apply(
            "einsum",
            [current, other],
            shape,
            saved=[(current, other), (other, current)],
            flops=flops if contracted else 0,
            matmul=bool(contracted),
            kernel="einsum",
        )
        term = "".join(kept)
    return current


def _laid_out(context: Context, x: Tensor, term: str, kept: list[str], other: str) -> Tensor:
    """PyTorch permutes each operand to (batch.

    Mine, summed) and reshapes it: a copy when memory order forbids a view.
    """
    if context.engine.framework != "torch":
        return x
    shape = x.shape or ()
    batch = [c for c in term if c in other and c in kept]
    mine = [c for c in term if c not in other and c in kept]
    summed = [c for c in term if c not in kept]
    order = [term.index(c) for c in (*batch, *mine, *summed)]
    groups = (
        numel(shape[term.index(c)] for c in batch),
        numel(shape[term.index(c)] for c in mine),
        numel(shape[term.index(c)] for c in summed),
    )
    either = []
    for arrangement, target in (
        (order, groups),
        ([term.index(c) for c in (*batch, *summed, *mine)], (groups[0], groups[2], groups[1])),
    ):
        turned = permute(context, x, arrangement) if arrangement != list(range(len(shape))) else x
        if as_view(turned.shape or (), turned.strides, target) is not None:
            return x
        either.append((turned, target))
    turned, target = either[0]
    return reshaped(context, turned, target)


@operator(
    [*names("cdist", "pdist"), "torch.nn.functional.pdist"],
    rename={"x": "input", "y": "other", "x1": "input", "x2": "other"},
)
def cdist(context: Context, input: Value, other: Value = None, *args: Value, **kwargs: Value) -> Value:
    """All distances between two sets."""
    del args, kwargs
    a = tensor(context, input)
    b = tensor(context, other) if other is not None else a
    left, right = a.shape or (), b.shape or ()
    out = (*broadcast(left[:-2], right[:-2]), left[-2], right[-2])
    return engine_of(context).apply(
        "cdist", [a, b], out, saved=[a, b, "output"], flops=2 * numel(out) * left[-1], matmul=True
    )


def _square(name: str, *aliases: str, saves: str = "output") -> None:
    def call(context: Context, input: Value, *args: Value, **kwargs: Value) -> Value:
        del args, kwargs
        x = tensor(context, input)
        return engine_of(context).apply(name, [x], x.shape or (), x.dtype, saved=[saves if saves == "output" else x])

    call.__name__ = name
    operator(
        [*names(name, *aliases), *(f"{f}.linalg.{n}" for f in ("torch", "paddle") for n in (name, *aliases))],
        rename={"x": "input", "A": "input"},
    )(call)


_square("inverse", "inv")
_square("pinverse", "pinv")
_square("cholesky")
_square("matrix_power")
_square("matrix_exp")
_square("cholesky_inverse")


@operator(
    [
        *(
            f"{f}.linalg.{n}"
            for f in ("torch", "paddle")
            for n in ("solve", "triangular_solve", "cholesky_solve", "lstsq", "solve_triangular")
        ),
        "torch.solve",
        "torch.cholesky_solve",
        "torch.triangular_solve",
    ],
    rename={},
)
def solve(context: Context, a: Value, b: Value, *args: Value, **kwargs: Value) -> Value:
    """Solution of linear systems."""
    del args, kwargs
    x, y = tensor(context, a), tensor(context, b)
    return engine_of(context).apply("solve", [x, y], y.shape or (), saved=[x, "output"])


@operator(
    [
        *(
            f"{f}.{n}"
            for f in ("torch", "paddle", "torch.linalg", "paddle.linalg")
            for n in ("det", "slogdet", "logdet")
        ),
        "torch.Tensor.det",
        "torch.Tensor.logdet",
        "paddle.Tensor.det",
    ],
    rename={"x": "input", "A": "input"},
)
def determinant(context: Context, input: Value) -> Value:
    """Determinants of matrices."""
    x = tensor(context, input)
    return engine_of(context).apply("determinant", [x], (x.shape or ())[:-2], x.dtype, saved=[x, "output"])


@operator(
    [
        f"{f}.{n}"
        for f in ("torch", "paddle", "torch.linalg", "paddle.linalg", "torch.Tensor", "paddle.Tensor")
        for n in ("svd", "svd_lowrank", "pca_lowrank")
    ],
    rename={"x": "input", "A": "input"},
)
def svd(context: Context, input: Value, *args: Value, full_matrices: Value = False, **kwargs: Value) -> Value:
    """Singular values and vectors."""
    del args, kwargs, full_matrices
    x = tensor(context, input)
    shape = x.shape or ()
    k = min(shape[-2:])
    outputs: list[tuple[tuple[int, ...], Any]] = [
        ((*shape[:-2], shape[-2], k), x.dtype),
        ((*shape[:-2], k), x.dtype),
        ((*shape[:-2], k, shape[-1]), x.dtype),
    ]
    return tuple(
        engine_of(context).apply_multi("svd", [x], outputs, saved=[("output", 0), ("output", 1), ("output", 2)])
    )


@operator(
    [
        f"{f}.{n}"
        for f in ("torch", "paddle", "torch.linalg", "paddle.linalg", "torch.Tensor", "paddle.Tensor")
        for n in ("qr", "eigh", "eig", "symeig", "lu")
    ],
    rename={"x": "input", "A": "input"},
)
def factors(context: Context, input: Value, *args: Value, **kwargs: Value) -> Value:
    """Two factors of a matrix (eigenvalues and vectors, or Q and R)."""
    del args, kwargs
    x = tensor(context, input)
    shape = x.shape or ()
    outputs: list[tuple[tuple[int, ...], Any]] = [((*shape[:-2], min(shape[-2:])), x.dtype), (shape, x.dtype)]
    return tuple(engine_of(context).apply_multi("eigh", [x], outputs, saved=[("output", 0), ("output", 1)]))


@operator(
    [
        f"{f}.{n}"
        for f in ("torch.linalg", "paddle.linalg")
        for n in ("matrix_rank", "cond", "eigvals", "eigvalsh", "svdvals")
    ],
    rename={"x": "input", "A": "input"},
)
def spectrum(context: Context, input: Value, *args: Value, **kwargs: Value) -> Value:
    """Numbers that sum up a matrix."""
    del args, kwargs
    x = tensor(context, input)
    return engine_of(context).apply("eigvals", [x], (x.shape or ())[:-1], x.dtype, saved=[x])


@operator([*(f"{f}.nn.functional.bilinear" for f in ("torch", "paddle"))], rename={"x1": "input1", "x2": "input2"})
def bilinear(context: Context, input1: Value, input2: Value, weight: Value, bias: Value = None) -> Value:
    """``x1ᵀ W x2 + b`` per output."""
    a, b, w = tensor(context, input1), tensor(context, input2), tensor(context, weight)
    wide = w.shape or ()
    out = (*(a.shape or ())[:-1], wide[0])
    rows = numel((a.shape or ())[:-1])
    inputs = [a, b, w, *([bias] if isinstance(bias, Tensor) else [])]
    return engine_of(context).apply("bilinear", inputs, out, saved=[a, b, w], flops=2 * rows * numel(wide), matmul=True)


@operator(
    [
        *(
            f"{f}.fft.{n}"
            for f in ("torch", "paddle")
            for n in ("fft", "ifft", "fft2", "ifft2", "fftn", "ifftn", "hfft", "ihfft")
        )
    ],
    rename={"x": "input"},
)
def fft(context: Context, input: Value, *args: Value, **kwargs: Value) -> Value:
    """Fourier transform: complex, same shape."""
    del args, kwargs
    x = tensor(context, input)
    return engine_of(context).apply(
        "fft_c2c", [x], x.shape or (), "complex64" if x.dtype != "float64" else "complex128"
    )


@operator(
    [*(f"{f}.fft.{n}" for f in ("torch", "paddle") for n in ("rfft", "rfft2", "rfftn"))],
    rename={"x": "input", "dim": "axis", "axes": "axis"},
)
def rfft(
    context: Context, input: Value, n: Value = None, axis: Value = -1, norm: Value = None, **kwargs: Value
) -> Value:
    """Half spectrum of real input."""
    del norm, kwargs
    x = tensor(context, input)
    shape = list(x.shape or ())
    at = axis_of(axis if isinstance(axis, int) else integers(axis)[-1] if axis is not None else -1, len(shape))
    size = n if isinstance(n, int) else shape[at]
    shape[at] = size // 2 + 1
    return engine_of(context).apply("fft_r2c", [x], shape, "complex64")


@operator(
    [*(f"{f}.fft.{n}" for f in ("torch", "paddle") for n in ("irfft", "irfft2", "irfftn"))],
    rename={"x": "input", "dim": "axis", "axes": "axis", "s": "n"},
)
def irfft(
    context: Context, input: Value, n: Value = None, axis: Value = -1, norm: Value = None, **kwargs: Value
) -> Value:
    """Real output of half a spectrum."""
    del norm, kwargs
    x = tensor(context, input)
    shape = list(x.shape or ())
    at = axis_of(axis if isinstance(axis, int) else integers(axis)[-1] if axis is not None else -1, len(shape))
    size = n if isinstance(n, int) else integers(n)[-1] if isinstance(n, (list, tuple)) else 2 * (shape[at] - 1)
    shape[at] = size
    return engine_of(context).apply("fft_c2r", [x], shape, "float32")


@operator([*(f"{f}.fft.{n}" for f in ("torch", "paddle") for n in ("fftshift", "ifftshift"))], rename={"x": "input"})
def fftshift(context: Context, input: Value, *args: Value, **kwargs: Value) -> Value:
    """Spectrum with its zero in the middle."""
    del args, kwargs
    x = tensor(context, input)
    return engine_of(context).apply("roll", [x], x.shape or (), x.dtype)


@operator(["torch.stft", "torch.Tensor.stft", "paddle.signal.stft"], rename={"x": "input"})
def stft(
    context: Context,
    input: Value,
    n_fft: Value,
    hop_length: Value = None,
    win_length: Value = None,
    window: Value = None,
    center: Value = True,
    **kwargs: Value,
) -> Value:
    """Short-time Fourier transform."""
    del win_length, window, kwargs
    x = tensor(context, input)
    shape = x.shape or ()
    size = int(n_fft)
    hop = hop_length if isinstance(hop_length, int) else size // 4
    length = shape[-1] + (size if center is not False else 0)
    return engine_of(context).apply("stft", [x], (*shape[:-1], size // 2 + 1, (length - size) // hop + 1), "complex64")


@operator(["paddle.signal.frame"], rename={"x": "input"})
def frame(
    context: Context, input: Value, frame_length: Value, hop_length: Value, axis: Value = -1, name: Value = None
) -> Value:
    """Overlapping windows of a signal: ``(…, frame_length, frames)``, or ``(frames, frame_length, …)`` along axis 0."""
    del name
    x = tensor(context, input)
    shape, size, hop = x.shape or (), integer(frame_length), integer(hop_length)
    first = axis == 0 and len(shape) > 1
    count = (shape[0 if first else -1] - size) // hop + 1
    out = (count, size, *shape[1:]) if first else (*shape[:-1], size, count)
    return engine_of(context).apply("frame", [x], out, x.dtype, saved=[x])


@operator(["paddle.signal.overlap_add"], rename={"x": "input"})
def overlap_add(context: Context, input: Value, hop_length: Value, axis: Value = -1, name: Value = None) -> Value:
    """The inverse of :func:`frame`: windows added up."""
    del name
    x = tensor(context, input)
    shape, hop = x.shape or (), integer(hop_length)
    if axis == 0:
        out = ((shape[0] - 1) * hop + shape[1], *shape[2:])
    else:
        out = (*shape[:-2], (shape[-1] - 1) * hop + shape[-2])
    return engine_of(context).apply("overlap_add", [x], out, x.dtype, saved=[x])
