"""What library calls mean, one file per area. An operator, a layer or a function is one entry.

An area says which libraries it serves by a constant near its top, ``LIBRARIES = ("torch", "paddle")``: the names of
top-level modules whose import loads it. That line is found by reading the file as text, so an area costs nothing until
a script imports one of its libraries.
"""

# ruff: noqa: E501, SIM905 - lists of names read best as words

from __future__ import annotations

import functools
import importlib
import pkgutil
import re

_CONSTANT = re.compile(r"^LIBRARIES(?::[^=]+)?\s*=\s*\(([^)]*)\)", re.MULTILINE)
_NAME = re.compile(r"[\"']([\w.]+)[\"']")
_HEAD = 6000
_OPAQUE = frozenset(
    # frameworks and arrays, mostly compiled: their meaning is the table's alone
    "torch paddle numpy cupy jax jaxlib tensorflow scipy cv2 PIL pandas pyarrow sklearn numba triton onnx onnxruntime av "
    "safetensors tokenizers sentencepiece einops "
    # the network, files and tables
    "huggingface_hub requests urllib3 httpx httpcore httpx2 httpcore2 aiohttp h11 anyio certifi idna fsspec filelock boto3 botocore "
    "google grpc psutil pynvml lmdb h5py truststore charset_normalizer "
    # what is shown or logged
    "tqdm rich matplotlib seaborn plotly bokeh wandb mlflow visualdl tensorboard tensorboardX pygments colorama termcolor loguru "
    "prettytable tabulate IPython ipywidgets "
    # the language itself
    "typeguard beartype typing_extensions packaging setuptools pkg_resources pip regex sympy networkx jinja2 yaml attr pydantic pydantic_core".split()
)
"""Libraries whose source says nothing of a model, or is compiled: only the table knows them, but for ``_READABLE``."""
_OPAQUE_PARTS = (
    "torchvision.datasets",
    "torchvision.io",
    "torchvision.transforms",
    "torchvision.tv_tensors",
    "torchvision.extension",
)
"""Parts of readable libraries that the table tells better."""
_READABLE = (
    "paddle.vision.models", "paddle.text", "torch.distributions", "torch.nn.modules.transformer", "paddle.vision.ops",
)  # fmt: skip


@functools.cache
def areas() -> dict[str, tuple[str, ...]]:
    """Top-level library name to the area modules that serve it."""
    found: dict[str, list[str]] = {}
    for info in pkgutil.iter_modules(__path__):
        data = pkgutil.get_data(__name__, f"{info.name}.py") if not info.ispkg else None
        match = _CONSTANT.search(data[:_HEAD].decode("utf-8", "replace")) if data else None
        for library in _NAME.findall(match.group(1)) if match else ():
            found.setdefault(library, []).append(info.name)
    return {library: tuple(names) for library, names in found.items()}


@functools.cache
def load(library: str) -> None:
    """Import the areas that serve the top-level module ``library``. A library without areas is simply not known."""
    for area in areas().get(library, ()):
        importlib.import_module(f"{__name__}.{area}")


def source_is_preferred(name: str) -> bool:
    """Whether a library module may be read from its source where the table has no entry."""
    top = name.partition(".")[0]
    if name.startswith(_OPAQUE_PARTS):
        return False
    return top not in _OPAQUE or any(name == r or name.startswith(f"{r}.") for r in _READABLE)
