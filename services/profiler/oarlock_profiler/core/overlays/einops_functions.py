"""einops: rearrange, reduce and repeat by pattern, as transposes, reshapes and reductions."""

from __future__ import annotations

from oarlock_profiler.core.engine.modules import LayerInstance
from oarlock_profiler.core.engine.shapes import ShapeError, numel
from oarlock_profiler.core.engine.tensor import Tensor
from oarlock_profiler.core.interpreter.values import Context, Native, Value
from oarlock_profiler.core.overlays.calling import Unknowable, guarded, integer, tensor
from oarlock_profiler.core.overlays.linear_algebra import einsum
from oarlock_profiler.core.overlays.nn_module import MODULE
from oarlock_profiler.core.overlays.registry import get, native_class, register
from oarlock_profiler.core.overlays.shaping import concat, expand, permute, reshaped, split, stack

LIBRARIES = ("einops",)

REDUCTIONS = {"max": "amax", "min": "amin"}
Groups = list[list[str]]


def parse(side: str) -> Groups:
    """``"b (h w) c"`` as groups of axis names; ``...`` is a name of its own, ``1`` an empty group."""
    groups: Groups = []
    inside: list[str] | None = None
    for word in side.replace("(", " ( ").replace(")", " ) ").split():
        if word == "(":
            inside = []
        elif word == ")":
            groups.append(inside or [])
            inside = None
        elif inside is not None:
            if word != "1":
                inside.append(word)
        else:
            groups.append([] if word == "1" else [word])
    return groups


def _sized(shape: tuple[int, ...], groups: Groups, given: dict[str, int]) -> tuple[dict[str, int], Groups]:
    extra = len(shape) - (len(groups) - 1) if ["..."] in groups else 0
    names = [f"...{i}" for i in range(extra)]
    plain = [g for group in groups for g in ([[n] for n in names] if group == ["..."] else [group])]
    if len(plain) != len(shape):
        raise ShapeError(f"a pattern of {len(plain)} axes for {list(shape)}")
    found = dict(given)
    for size, group in zip(shape, plain, strict=True):
        unknown = [n for n in group if n not in found]
        rest = numel(found[n] for n in group if n in found)
        if len(unknown) > 1 or (rest and size % rest):
            raise ShapeError(f"{size} cannot be split as {group}")
        if unknown:
            found[unknown[0]] = size // max(rest, 1)
        elif rest != size:
            raise ShapeError(f"{group} is {rest}, not {size}")
    found["..."] = extra
    return found, plain


def _spread(groups: Groups, extra: int) -> Groups:
    result: Groups = []
    for group in groups:
        if group == ["..."]:
            result += [[f"...{i}"] for i in range(extra)]
        else:
            result.append(
                [n for name in group for n in ([f"...{i}" for i in range(extra)] if name == "..." else [name])]
            )
    return result


def apply_pattern(
    context: Context, value: Value, pattern: Value, sizes: dict[str, Value], reduction: str | None, repeat: bool
) -> Tensor:
    """One pattern on one tensor."""
    if not isinstance(pattern, str):
        raise Unknowable("the pattern is not known")
    if isinstance(value, (list, tuple)):
        value = stack(context, list(value), 0)
    x = tensor(context, value)
    left, _, right = pattern.partition("->")
    extents, plain = _sized(x.shape or (), parse(left), {k: integer(v) for k, v in sizes.items()})
    after = _spread(parse(right), extents.pop("..."))
    atoms = [name for group in plain for name in group]
    wanted = [name for group in after for name in group]
    x = reshaped(context, x, tuple(extents[a] for a in atoms))
    dropped = [a for a in atoms if a not in wanted]
    if dropped:
        if reduction is None:
            raise ShapeError(f"{dropped} vanish in {pattern}")
        fn = get(f"{context.engine.framework}.{REDUCTIONS.get(reduction, reduction)}")
        x = fn.call(context, x, [atoms.index(a) for a in dropped])
        atoms = [a for a in atoms if a in wanted]
    kept = [w for w in wanted if w in atoms]
    if kept != atoms:
        x = permute(context, x, [atoms.index(a) for a in kept])
    new = [w for w in wanted if w not in atoms]
    if new:
        if not repeat:
            raise ShapeError(f"{new} appear from nowhere in {pattern}")
        x = reshaped(context, x, tuple(extents[w] if w in atoms else 1 for w in wanted))
        x = expand(context, x, [extents[w] for w in wanted])
    return reshaped(context, x, tuple(numel(extents[n] for n in group) for group in after))


def rearrange(context: Context, tensor: Value, pattern: Value, **sizes: Value) -> Value:
    """Axes moved, split and joined."""
    return guarded(context, lambda c: apply_pattern(c, tensor, pattern, sizes, None, False), (), {})


def reduce(context: Context, tensor: Value, pattern: Value, reduction: Value = "mean", **sizes: Value) -> Value:
    """Axes that vanish are reduced."""
    name = reduction if isinstance(reduction, str) else "mean"
    return guarded(context, lambda c: apply_pattern(c, tensor, pattern, sizes, name, False), (), {})


def repeat(context: Context, tensor: Value, pattern: Value, **sizes: Value) -> Value:
    """Axes that appear repeat the tensor."""
    return guarded(context, lambda c: apply_pattern(c, tensor, pattern, sizes, None, True), (), {})


def pack(context: Context, tensors: Value, pattern: Value) -> Value:
    """Several tensors joined along one axis; gives their shapes too."""

    def run(inner: Context) -> Value:
        before = parse(str(pattern)).index(["*"])
        after = len(parse(str(pattern))) - before - 1
        flat, shapes = [], []
        for value in tensors:
            x = tensor(inner, value)
            shape = x.shape or ()
            middle = shape[before : len(shape) - after]
            shapes.append(list(middle))
            flat.append(reshaped(inner, x, (*shape[:before], numel(middle), *shape[len(shape) - after :])))
        return (concat(inner, flat, before), shapes)

    return guarded(context, run, (), {})


def unpack(context: Context, tensor: Value, shapes: Value, pattern: Value) -> Value:
    """The reverse of :func:`pack`."""

    def run(inner: Context) -> Value:
        axis = parse(str(pattern)).index(["*"])
        parts = split(inner, tensor, [numel(s) for s in shapes], axis)
        return [
            reshaped(inner, p, (*(p.shape or ())[:axis], *s, *(p.shape or ())[axis + 1 :]))
            for p, s in zip(parts, shapes, strict=True)
        ]

    return guarded(context, run, (), {})


def einsum_by_name(context: Context, *args: Value) -> Value:
    """``einsum(tensors…, "b i, b j -> b i j")`` with long axis names."""
    pattern, tensors = args[-1], args[:-1]
    letters: dict[str, str] = {}
    spelled = []
    for part in str(pattern).replace("->", " -> ").split():
        if part == "->":
            spelled.append("->")
        elif part in (",",):
            spelled.append(",")
        else:
            name, comma = part.rstrip(","), "," if part.endswith(",") else ""
            spelled.append(("..." if name == "..." else letters.setdefault(name, chr(ord("a") + len(letters)))) + comma)
    return guarded(context, lambda c: einsum(c, "".join(spelled), *tensors), (), {})


def parse_shape(context: Context, x: Value, pattern: Value) -> Value:
    """Axis names to sizes."""
    shape = x.shape if isinstance(x, Tensor) and x.shape is not None else ()
    return {name: size for name, size in zip(str(pattern).split(), shape, strict=False) if name != "_"}


for _owner in ("einops", "einops.einops"):
    for _name, _function in (
        ("rearrange", rearrange),
        ("reduce", reduce),
        ("repeat", repeat),
        ("pack", pack),
        ("unpack", unpack),
        ("einsum", einsum_by_name),
        ("parse_shape", parse_shape),
    ):
        register(f"{_owner}.{_name}", Native(f"{_owner}.{_name}", _function))


def _layer(framework: str, name: str) -> None:
    def init(context: Context, self: LayerInstance, pattern: Value, reduction: Value = None, **sizes: Value) -> None:
        self.where = self.where or context.where
        self.config.update(pattern=pattern, reduction=reduction, sizes=sizes)

    def forward(context: Context, self: LayerInstance, x: Value) -> Value:
        if name == "Reduce":
            return reduce(context, x, self.config["pattern"], self.config["reduction"], **self.config["sizes"])
        return rearrange(context, x, self.config["pattern"], **self.config["sizes"])

    cls = native_class(f"einops.layers.{framework}.{name}", bases=(MODULE[framework],), __init__=init, forward=forward)
    register(f"einops.layers.{framework}.{name}", cls)


for _framework in ("torch", "paddle"):
    _layer(_framework, "Rearrange")
    _layer(_framework, "Reduce")
