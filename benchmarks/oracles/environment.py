"""``python -m benchmarks.oracles.environment``: makes the environment of the real frameworks, apart from the product's.

It lies where ``OARLOCK_ORACLES`` says (default ``.cache/oracles``): a virtual environment with PyTorch and PaddlePaddle
for CPUs, timm and transformers, and in its folder ``src`` the libraries whose source is enough (torchvision: unpacked,
not installed). Where pip knows a PyTorch for CPUs (``PIP_EXTRA_INDEX_URL``, ``PIP_FIND_LINKS``) it takes that; else the
common one, which is large and does as well.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

PACKAGES = ("torch==2.13.0", "paddlepaddle==3.3.1", "transformers==5.24.0", "numpy<2.4", "setuptools<81")
ALONE = (
    "timm==1.0.31", "opencv-python-headless", "scipy", "scikit-learn", "joblib", "threadpoolctl", "cloudpickle", "loky",
    "narwhals", "pandas", "pytz", "python-dateutil", "six", "tzdata", "matplotlib", "cycler", "pyparsing", "kiwisolver",
    "contourpy", "fonttools", "prettytable", "wcwidth", "typeguard", "terminaltables", "requests", "urllib3",
    "charset-normalizer", "pycocotools", "shapely", "lap", "motmetrics", "xmltodict", "easydict", "faiss-cpu",
    "pyclipper", "visualdl",
)  # fmt: skip
"""Installed without what they ask for: timm would bring a torchvision that does not match a CPU build of PyTorch, and
the others are only there because packages of models import them."""
SOURCES = (
    "torchvision==0.28.0", "paddleclas==2.6.0", "paddleseg==2.8.0", "paddledet==2.6.0",
    "segmentation-models-pytorch==0.6.0",
)  # fmt: skip


def root() -> Path:
    """The environment's folder."""
    return Path(os.environ.get("OARLOCK_ORACLES", ".cache/oracles"))


def python() -> Path:
    """Its interpreter."""
    return root() / "bin" / "python"


def exists() -> bool:
    """Whether it was made."""
    return python().exists()


def library_paths() -> list[str]:
    """Where the libraries' source lies, for the reader's library path."""
    packages = sorted(str(p) for p in (root() / "lib").glob("python3*/site-packages"))
    return [*packages, str(root() / "src")]


def create() -> None:
    """Make the environment, or complete it."""
    if not exists():
        subprocess.run([sys.executable, "-m", "venv", str(root())], check=True)
    pip = [str(python()), "-m", "pip", "--disable-pip-version-check", "--quiet"]
    subprocess.run([*pip, "install", *PACKAGES], check=True)
    subprocess.run([*pip, "install", "--no-deps", *ALONE], check=True)
    for requirement in SOURCES:
        unpack(requirement, root() / "src", pip)


def unpack(requirement: str, target: Path, pip: list[str] | None = None) -> None:
    """The Python files of a wheel, as text to read: nothing of it is installed or run."""
    target.mkdir(parents=True, exist_ok=True)
    command = pip or [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [*command, "download", "--no-deps", "--only-binary=:all:", "-d", folder, requirement], check=True
        )
        for wheel in Path(folder).glob("*.whl"):
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(
                    target, [n for n in archive.namelist() if n.endswith((".py", ".yaml", ".yml", ".json"))]
                )


if __name__ == "__main__":
    create()
    print(f"the frameworks are in {root()}")
