"""The image catalogue: which container image a run gets, by framework, vendor and driver.

Tags of PaddlePaddle's own images and the drivers they need: PaddlePaddle's installation guide and image pages (read
August 2026); of PyTorch's: Docker Hub ``pytorch/pytorch`` and NVIDIA's table of minimum drivers per CUDA release.
Vendor images other than NVIDIA's are tool-chain images, to which the framework is added by whoever runs the site: an
operator's own entries come before these.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Image:
    """One entry. ``None`` matches anything; ``kind`` may hold ``*``; ``driver`` is the least version it needs."""

    image: str
    framework: str | None = None
    vendor: str | None = None
    kind: str | None = None
    driver: str | None = None


class NoImage(LookupError):
    """No image is known for this; the message says how to name one."""


_BAIDU = "registry.baidubce.com/device"

CATALOGUE: tuple[Image, ...] = (
    Image("paddlepaddle/paddle:3.3.1-gpu-cuda13.0-cudnn9.13", "paddlepaddle", "nvidia", driver="580"),
    Image("paddlepaddle/paddle:3.3.1-gpu-cuda12.6-cudnn9.5", "paddlepaddle", "nvidia", driver="550.54.14"),
    Image("paddlepaddle/paddle:3.0.0-gpu-cuda11.8-cudnn8.9-trt8.6", "paddlepaddle", "nvidia", driver="450.80.02"),
    Image("paddlepaddle/paddle:3.3.0", "paddlepaddle", "cpu"),
    Image(f"{_BAIDU}/paddle-npu:cann80T2-910A-ubuntu18-x86_64", "paddlepaddle", "ascend", "Ascend 910A*"),
    Image(f"{_BAIDU}/paddle-npu:cann800-ubuntu20-npu-910b-base-x86_64-gcc84", "paddlepaddle", "ascend"),
    Image(f"{_BAIDU}/paddle-xpu:ubuntu20-x86_64-gcc84-py310", "paddlepaddle", "kunlunxin"),
    Image(f"{_BAIDU}/paddle-mlu:ubuntu20-x86_64-gcc84-py310", "paddlepaddle", "cambricon"),
    Image(f"{_BAIDU}/paddle-dcu:dtk23.10.1-kylinv10-gcc73-py310", "paddlepaddle", "hygon"),
    Image(f"{_BAIDU}/paddle-gcu:topsrider3.5.102-ubuntu20-x86_64-gcc84", "paddlepaddle", "enflame"),
    Image(f"{_BAIDU}/paddle-ixuca:latest", "paddlepaddle", "iluvatar"),
    Image("pytorch/pytorch:2.7.1-cuda12.6-cudnn9-runtime", "pytorch", "nvidia", driver="560.28.03"),
    Image("pytorch/pytorch:2.6.0-cuda11.8-cudnn9-runtime", "pytorch", "nvidia", driver="450.80.02"),
    Image("pytorch/pytorch:2.7.1-cuda12.6-cudnn9-runtime", "pytorch", "cpu"),
    # Has NumPy, as PaddlePaddle needs it.
    Image("paddlepaddle/paddle:3.3.0", None, "cpu"),
)


def choose_image(
    framework: str | None,
    vendor: str,
    kind: str,
    driver: str | None,
    *,
    wanted: str | None = None,
    own: Sequence[Image] = (),
) -> str:
    """The first entry that matches, the site's ``own`` before the catalogue's; ``wanted`` before all.

    An unknown ``driver`` takes the entry that needs the oldest one, since that runs on every newer one.

    Raises:
        NoImage: nothing matches.
    """
    if wanted is not None:
        return wanted
    for entries in (own, CATALOGUE):
        fitting = [entry for entry in entries if _matches(entry, framework, vendor, kind)]
        runnable = [entry for entry in fitting if _driver_suffices(driver, entry.driver)]
        if runnable:
            return runnable[0].image
        if fitting and driver is None:
            return min(fitting, key=lambda entry: _version(entry.driver or "0")).image
        if fitting:
            least = min((entry.driver or "0" for entry in fitting), key=_version)
            raise NoImage(f"driver {driver} of {kind} is older than {least}, which the oldest {framework} image needs")
    raise NoImage(
        f"no image is known for {framework or 'an unknown framework'} on {vendor} {kind}: give the task an `image`, "
        "or add an entry to the site's image file"
    )


def _matches(entry: Image, framework: str | None, vendor: str, kind: str) -> bool:
    return (
        entry.framework in (None, framework)
        and entry.vendor in (None, vendor)
        and (entry.kind is None or fnmatch.fnmatchcase(kind, entry.kind))
    )


def _driver_suffices(have: str | None, need: str | None) -> bool:
    return need is None or (have is not None and _version(have) >= _version(need))


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) if part.isdigit() else 0 for part in text.split(".")[:4])
