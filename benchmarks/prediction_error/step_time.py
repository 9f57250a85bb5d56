"""``python -m benchmarks.prediction_error.step_time --throughput FOLDER``: step times against measured ones.

timm's training benchmark on an RTX 3090 (AMP): two constants are fitted on the model families that are not scored
(fixed folds by family), in the forms of :data:`FORMS`: a factor with either a time per kernel launch or the slowdown of
depthwise convolutions; the form with all three is shown for comparison.
Gavel's table: which of K80, P100 and V100 is the fastest, by our step times; regret is the speed lost.
"""

from __future__ import annotations

import argparse
import random
import re
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from benchmarks.prediction_error.cases import FOLDS, rows
from oarlock_profiler.adapters.devices import spec_named
from oarlock_profiler.adapters.sources import text_sources
from oarlock_profiler.core import cost
from oarlock_profiler.core.reader import read
from oarlock_profiler.core.reading import Request

_TIMM = """import torch
import timm

device = torch.device("cuda")
model = timm.create_model("{name}").to(device){layout}
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loss_function = torch.nn.CrossEntropyLoss().to(device)
images = torch.randn({batch}, 3, {size}, {size}, device=device)
target = torch.randint(0, 1000, ({batch},), device=device)
for step in range(50):
    optimizer.zero_grad()
    with torch.autocast("cuda"):
        loss = loss_function(model(images), target)
    loss.backward()
    optimizer.step()
"""

_RESNET = """import torch
import torch.nn as nn
from torchvision.models import resnet18

model = resnet18(num_classes=10)
model.conv1 = nn.Conv2d(3, 64, 3, padding=1, bias=False)
model.maxpool = nn.Identity()
model = model.cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for step in range(50):
    x, y = torch.randn({batch}, 3, 32, 32).cuda(), torch.randint(0, 10, ({batch},)).cuda()
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
"""

_TRANSFORMER = """import torch
import torch.nn as nn

words = nn.Embedding(9500, 512).cuda()
model = nn.Transformer(512, 8, 6, 6, 2048, batch_first=True).cuda()
head = nn.Linear(512, 9500).cuda()
optimizer = torch.optim.Adam([*words.parameters(), *model.parameters(), *head.parameters()], lr=1e-3)
for step in range(50):
    source = torch.randint(0, 9500, ({batch}, 30)).cuda()
    target = torch.randint(0, 9500, ({batch}, 30)).cuda()
    optimizer.zero_grad()
    scores = head(model(words(source), words(target)))
    loss = nn.functional.cross_entropy(scores.reshape(-1, 9500), target.reshape(-1))
    loss.backward()
    optimizer.step()
"""

GPUS = {"k80": "K80", "p100": "P100 PCIe 16GB", "v100": "V100 SXM2 16GB"}


@dataclass(frozen=True, slots=True)
class Timed:
    """One measured model: what the roofline says (depthwise convolutions apart), its launches, the measured seconds."""

    name: str
    roofline: float
    depthwise: float
    launches: int
    measured: float

    @property
    def fold(self) -> int:
        """By family, so that no family lends constants to itself."""
        family = re.match(r"[a-z]+", self.name.removeprefix("tf_"))
        return int(sha256((family.group() if family else self.name).encode()).hexdigest(), 16) % FOLDS


def _work(script: str, library_paths: Sequence[Path]) -> cost.Work:
    reading = read(
        Request(entry="main.py"), text_sources({"main.py": script}, library_paths=library_paths), time.monotonic
    )
    return cost.work_of(reading.trace)


def timm(folder: Path, library_paths: Sequence[Path], limit: int) -> list[Timed]:
    """A fixed sample of the timm table."""
    spec = spec_named("RTX 3090")
    if spec is None:
        raise ValueError("the catalogue has no RTX 3090")
    table = list(rows(folder / "timm_train_amp_rtx3090.csv"))
    found = []
    for row in random.Random(5).sample(table, min(limit, len(table))):
        layout = ".to(memory_format=torch.channels_last)" if row["memory_format"] == "channels_last" else ""
        script = _TIMM.format(
            name=row["model"], layout=layout, batch=row["train_batch_size"], size=row["train_img_size"]
        )
        work = _work(script, library_paths)
        once, twice = (cost.step_seconds(work, spec, "pytorch", depthwise_slowdown=factor) for factor in (1.0, 2.0))
        if once is None or twice is None or not work.ops:
            print(f"abstained: {row['model']}")
            continue
        depthwise = twice - once
        measured = float(row["train_step_time"]) / 1000
        found.append(Timed(row["model"], once - depthwise, depthwise, work.launches, measured))
    return found


Constants = tuple[float, float, int]
"""A factor on the roofline, seconds of a kernel launch, the slowdown of depthwise convolutions."""

FORMS: dict[str, tuple[Sequence[float], Sequence[int]]] = {
    "factor and launch": (range(0, 40, 2), (1,)),
    "factor and depthwise": ((0,), range(1, 13)),
    "all three": (range(0, 40, 4), range(1, 9)),
}
"""What is searched besides the factor: microseconds of a launch, and slowdowns of depthwise convolutions."""


def fitted(timed: Sequence[Timed], form: str) -> list[tuple[str, float]]:
    """Relative error of each model with the constants of ``form`` that suit the other folds best."""
    launches, slowdowns = FORMS[form]
    errors = []
    for fold in range(FOLDS):
        others = [item for item in timed if item.fold != fold]
        best = min(
            (
                (factor / 20, launch * 1e-6, slowdown)
                for factor in range(8, 80)
                for launch in launches
                for slowdown in slowdowns
            ),
            key=lambda chosen: statistics.median(abs(_seconds(item, chosen) / item.measured - 1) for item in others),
        )
        errors += [(item.name, _seconds(item, best) / item.measured - 1) for item in timed if item.fold == fold]
    return errors


def _seconds(item: Timed, constants: Constants) -> float:
    factor, launch, slowdown = constants
    return factor * (item.roofline + slowdown * item.depthwise) + launch * item.launches


@dataclass(frozen=True, slots=True)
class GavelJob:
    """A job of the table: measured steps a second and our step seconds (`None` where unknown), by GPU."""

    name: str
    measured: dict[str, float]
    predicted: dict[str, float | None]

    def regret(self, chosen: str) -> float:
        """Speed lost by running on this GPU instead of the fastest."""
        return 1 - self.measured[chosen] / max(self.measured.values())


def gavel_jobs(folder: Path) -> list[GavelJob]:
    """The single-GPU jobs whose model is public."""
    speeds: dict[str, dict[str, float]] = {}
    for row in rows(folder / "gavel_steps_per_second.csv"):
        if row["gpus"] == "1":
            speeds.setdefault(row["job"], {})[row["gpu"]] = float(row["steps_per_second"])
    found = []
    for job, measured in speeds.items():
        batch = re.search(r"batch size (\d+)", job)
        template = _RESNET if job.startswith("ResNet-18") else _TRANSFORMER if job.startswith("Transformer") else None
        if template is None or batch is None:
            continue
        work = _work(template.format(batch=batch.group(1)), ())
        predicted = {}
        for gpu in measured:
            spec = spec_named(GPUS[gpu])
            predicted[gpu] = cost.step_seconds(work, spec, "pytorch") if spec else None
        found.append(GavelJob(job, measured, predicted))
    return found


def gavel(folder: Path) -> list[tuple[str, str, float]]:
    """Job, chosen GPU and regret, for the jobs whose model is public."""
    found = []
    for job in gavel_jobs(folder):
        # Of kinds within a tenth of the fastest (host-bound steps) the least capable one is taken.
        known = {gpu: seconds for gpu, seconds in job.predicted.items() if seconds is not None}
        close = [gpu for gpu, seconds in known.items() if seconds <= 1.1 * min(known.values())]
        chosen = min(close, key=list(GPUS).index)
        found.append((job.name, chosen, job.regret(chosen)))
    return found


def main() -> int:
    """Run both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--throughput", type=Path, required=True)
    parser.add_argument("--library-path", type=Path, action="append", default=[])
    parser.add_argument("--limit", type=int, default=60)
    options = parser.parse_args()
    jobs = gavel(options.throughput)
    for job, chosen, regret in jobs:
        print(f"{job}: {chosen}, regret {regret:.1%}")
    if jobs:
        print(f"gavel: {len(jobs)} jobs, mean regret {statistics.mean(regret for _, _, regret in jobs):.1%}")
    timed = timm(options.throughput, options.library_path, options.limit)
    for form in FORMS if timed else ():
        errors = sorted(abs(error) for _, error in fitted(timed, form))
        p90 = errors[int(len(errors) * 0.9)]
        print(f"timm RTX 3090, {form}: {len(errors)} models, median {errors[len(errors) // 2]:.1%}, p90 {p90:.1%}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
