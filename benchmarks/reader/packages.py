"""Model classes of packages built on the frameworks, found in the packages' own text by one rule each.

- paddleclas: every name that ``ppcls.arch.backbone`` exports, called without arguments.
- paddleseg: everything registered as a model or a backbone; what has no default is given where it is the number of
  classes, the backbone or its stages.
- paddledet: everything registered below ``ppdet.modeling``, called without arguments; architectures by its ``create``.
- segmentation-models-pytorch: every architecture with its default encoder, and a U-Net on every encoder of its own.

What the framework itself does not build in this way, or what has no parameters, is not counted.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from pathlib import Path

GIVEN = {
    "num_classes": "num_classes=19",
    "backbone": "backbone=ResNet50_vd()",
    "backbone_indices": "backbone_indices=(0, 1, 2, 3)",
}
"""For what paddleseg's classes ask for without a default."""


def discover(suite: str, source: Path) -> list[tuple[str, str]]:
    """``(name, source text that builds model)`` of a package unpacked below ``source``; empty where it is not there."""
    return sorted(_RULES[suite](source))


def _parse(path: Path) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the packages' own escapes
        return ast.parse(path.read_text(encoding="utf-8"))


def _paddleclas(source: Path) -> Iterator[tuple[str, str]]:
    path = source / "paddleclas/ppcls/arch/backbone/__init__.py"
    if path.exists():
        names = {a.asname or a.name for n in _parse(path).body if isinstance(n, ast.ImportFrom) for a in n.names}
        for name in names:
            yield name, f"import paddle\nfrom paddleclas.ppcls.arch import backbone\nmodel = backbone.{name}()\n"


def _paddleseg(source: Path) -> Iterator[tuple[str, str]]:
    root = source / "paddleseg"
    for path in (root / "models").rglob("*.py"):
        module = ".".join(path.relative_to(source).with_suffix("").parts)
        for node in _parse(path).body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef) and _decorated(node, ("MODELS", "BACKBONES")):
                given = ", ".join(GIVEN[name] for name in _required(node) if name in GIVEN)
                more = "from paddleseg.models.backbones import ResNet50_vd\n" if "ResNet50_vd" in given else ""
                text = f"import paddle\n{more}from {module} import {node.name}\nmodel = {node.name}({given})\n"
                yield node.name, text


def _paddledet(source: Path) -> Iterator[tuple[str, str]]:
    root = source / "ppdet/modeling"
    for path in root.rglob("*.py"):
        module = ".".join(path.relative_to(source).with_suffix("").parts)
        for node in _parse(path).body:
            if isinstance(node, ast.ClassDef) and any(
                isinstance(d, ast.Name) and d.id == "register" for d in node.decorator_list
            ):
                text = f"from {module} import {node.name}\nmodel = {node.name}()\n"
                if path.parent.name == "architectures":
                    text = "import ppdet.modeling\nfrom ppdet.core.workspace import create\n"
                    text += f"model = create({node.name!r})\n"
                yield node.name, f"import paddle\n{text}"


def _segmentation_models(source: Path) -> Iterator[tuple[str, str]]:
    root = source / "segmentation_models_pytorch"
    if not root.exists():
        return
    head = "import torch\nimport segmentation_models_pytorch as smp\n"
    for node in _parse(root / "__init__.py").body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "_MODEL_ARCHITECTURES":
            for name in map(ast.unparse, getattr(node.value, "elts", [])):
                yield name, f"{head}model = smp.{name}(encoder_weights=None)\n"
    for path in (root / "encoders").glob("*.py"):
        for node in _parse(path).body:
            if (
                isinstance(node, ast.Assign)
                and isinstance(node.value, ast.Dict)
                and ast.unparse(node.targets[0]).endswith("_encoders")
            ):
                for key in node.value.keys:
                    if isinstance(key, ast.Constant) and isinstance(key.value, str):
                        text = f"{head}model = smp.Unet({key.value!r}, encoder_weights=None)\n"
                        yield f"Unet on {key.value}", text


def _decorated(node: ast.ClassDef | ast.FunctionDef, registries: tuple[str, ...]) -> bool:
    words = {f"manager.{registry}.add_component" for registry in registries}
    return any(ast.unparse(d) in words for d in node.decorator_list)


def _required(node: ast.ClassDef | ast.FunctionDef) -> list[str]:
    """Parameters without a default, of the function or of the class's constructor."""
    if isinstance(node, ast.ClassDef):
        found = next((n for n in node.body if isinstance(n, ast.FunctionDef) and n.name == "__init__"), None)
        if found is None:
            return []
        arguments, skip = found.args, 1
    else:
        arguments, skip = node.args, 0
    plain = [*arguments.posonlyargs, *arguments.args][skip:]
    return [a.arg for a in plain[: len(plain) - len(arguments.defaults)]] + [
        a.arg for a, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if default is None
    ]


_RULES = {
    "paddleclas": _paddleclas,
    "paddleseg": _paddleseg,
    "paddledet": _paddledet,
    "segmentation-models-pytorch": _segmentation_models,
}
SUITES = tuple(_RULES)
