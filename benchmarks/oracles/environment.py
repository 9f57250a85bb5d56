"""``python -m benchmarks.oracles.environment``: makes the environment of the real frameworks, apart from the product's.

It lies where ``OARLOCK_ORACLES`` says (default ``.cache/oracles``): a virtual environment with PyTorch and PaddlePaddle
for CPUs, timm and transformers, and in its folder ``src`` the libraries whose source is enough (torchvision: unpacked,
not installed). Where pip knows a PyTorch for CPUs (``PIP_EXTRA_INDEX_URL``, ``PIP_FIND_LINKS``) it takes that; else the
common one, which is large and does as well.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

PACKAGES = ("torch==2.13.0", "paddlepaddle==3.3.1", "transformers==5.24.0", "numpy<2.4", "setuptools<81")
ALONE = ("timm==1.0.31",)
"""Installed without what it asks for, which would bring a torchvision that does not match a CPU build of PyTorch."""
FOR_PACKAGES = (
    "opencv-python-headless==5.0.0.93", "scipy==1.17.1", "scikit-learn==1.9.1", "joblib==1.6.0",
    "threadpoolctl==3.8.0", "cloudpickle==3.1.3", "loky==3.7.0", "narwhals==2.29.0", "pandas==3.1.1", "pytz==2026.6",
    "python-dateutil==4.0.0", "six==1.17.0", "tzdata==2026.6", "matplotlib==3.11.2", "cycler==0.12.1",
    "pyparsing==3.3.3", "kiwisolver==1.5.1", "contourpy==1.3.3", "fonttools==4.68.0", "prettytable==3.18.0",
    "wcwidth==0.9.4", "typeguard==4.6.1", "terminaltables==3.1.10", "requests==2.34.2", "urllib3==2.8.0",
    "charset-normalizer==3.5.3", "pycocotools==2.0.11", "shapely==2.2.0", "lap==0.5.13", "motmetrics==1.4.0",
    "xmltodict==1.0.4", "easydict==1.14", "faiss-cpu==1.15.1", "pyclipper==1.4.0", "visualdl==2.5.3",
)  # fmt: skip
"""What packages of models import, which are asked only by ``make bench-reader --measure``; installed alone too."""
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


def create(*, packages: bool = False) -> None:
    """Make the environment, or complete it; with ``packages`` the packages of models can be built in it too."""
    if not exists():
        subprocess.run([sys.executable, "-m", "venv", str(root())], check=True)
    pip = [str(python()), "-m", "pip", "--disable-pip-version-check", "--quiet"]
    subprocess.run([*pip, "install", *PACKAGES], check=True)
    subprocess.run([*pip, "install", "--no-deps", *ALONE, *(FOR_PACKAGES if packages else ())], check=True)
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
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--packages", action="store_true", help="also what paddleclas and other packages import")
    create(packages=parser.parse_args().packages)
    print(f"the frameworks are in {root()}")
