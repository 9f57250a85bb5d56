# ruff: noqa: E501 - a table of command lines

"""Other people's training entry points, from packages of PyPI: read as text, never executed, never kept here.

They lie in the folder ``foreign`` of the oracle environment, one folder a package; ``python -m
benchmarks.reader.foreign`` fetches them.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.oracles import environment

from oarlock_profiler.adapters.sources import AnySources, open_sources
from oarlock_profiler.core.interpreter.budget import Limits
from oarlock_profiler.core.reader import read
from oarlock_profiler.core.reading import Reading, Request, Sources

PACKAGES = (
    "paddlets", "paddlespeech", "paddleformers", "torchtune", "lightning-bolts", "accelerate", "yolov5", "nnunetv2", "litgpt", "torchrl",
    "paddleclas", "paddleseg", "paddledet", "segmentation-models-pytorch",
)  # fmt: skip
REQUIRED = (
    "ultralytics", "torchmetrics", "tensordict", "dynamic-network-architectures", "batchgenerators", "batchgeneratorsv2", "lightning-utilities",
    "pyvers",
)  # fmt: skip
"""What those packages ask for themselves and nobody runs them without."""
GIVEN = Path(__file__).parent / "given"
"""Required arguments that are files and that a wheel leaves out: configurations, by package, as its own users write them."""
ENVIRONMENT = {
    "nnunetv2": {"nnUNet_raw": "raw", "nnUNet_preprocessed": "preprocessed", "nnUNet_results": "results"},
}  # fmt: skip
SECONDS = 60.0
"""Processor time that one entry may take: what else the machine does says nothing of the reader."""
BOLTS = "pl_bolts/models/"
ENTRIES = f"""
yolov5 yolov5/train.py --data coco128.yaml --weights '' --cfg yolov5s.yaml
yolov5 yolov5/segment/train.py --weights '' --cfg yolov5s-seg.yaml
yolov5 yolov5/classify/train.py --model resnet18 --data cifar10
accelerate/accelerate/test_utils/scripts test_sync.py
accelerate/accelerate/test_utils/scripts test_ddp_comm_hook.py
accelerate/accelerate/test_utils/scripts external_deps/test_checkpointing.py
accelerate/accelerate/test_utils/scripts external_deps/test_performance.py
accelerate/accelerate/test_utils/scripts external_deps/test_peak_memory_usage.py
accelerate/accelerate/test_utils/scripts external_deps/test_ds_multiple_model.py
lightning_bolts {BOLTS}autoencoders/basic_vae/basic_vae_module.py --dataset cifar10
lightning_bolts {BOLTS}autoencoders/basic_ae/basic_ae_module.py --dataset cifar10
lightning_bolts {BOLTS}self_supervised/simclr/simclr_module.py --dataset cifar10
lightning_bolts {BOLTS}self_supervised/byol/byol_module.py
lightning_bolts {BOLTS}self_supervised/moco/moco2_module.py
lightning_bolts {BOLTS}self_supervised/simsiam/simsiam_module.py --dataset cifar10
lightning_bolts {BOLTS}self_supervised/swav/swav_module.py --dataset cifar10 --data_dir .
lightning_bolts {BOLTS}self_supervised/cpc/cpc_module.py --dataset cifar10
lightning_bolts {BOLTS}self_supervised/amdim/amdim_module.py
lightning_bolts {BOLTS}gans/dcgan/dcgan_module.py
lightning_bolts {BOLTS}gans/basic/basic_gan_module.py
lightning_bolts {BOLTS}gans/srgan/srresnet_module.py --dataset mnist
lightning_bolts {BOLTS}gans/srgan/srgan_module.py --dataset mnist
lightning_bolts {BOLTS}mnist_module.py
lightning_bolts {BOLTS}vision/image_gpt/igpt_module.py
lightning_bolts {BOLTS}vision/segmentation.py --data_dir .
lightning_bolts {BOLTS}regression/logistic_regression.py
lightning_bolts {BOLTS}regression/linear_regression.py
lightning_bolts {BOLTS}rl/dqn_model.py
lightning_bolts {BOLTS}rl/reinforce_model.py
lightning_bolts {BOLTS}rl/sac_model.py
lightning_bolts {BOLTS}detection/faster_rcnn/faster_rcnn_module.py --data_dir .
torchtune recipes/full_finetune_single_device.py --config recipes/configs/llama3_2/1B_full_single_device.yaml
torchtune recipes/lora_finetune_single_device.py --config recipes/configs/llama2/7B_lora_single_device.yaml
torchtune recipes/lora_dpo_single_device.py --config recipes/configs/llama3_1/8B_lora_dpo_single_device.yaml
torchtune recipes/full_finetune_distributed.py --config recipes/configs/llama3_2/1B_full.yaml
torchtune recipes/lora_finetune_distributed.py --config recipes/configs/llama3_1/8B_lora.yaml
torchtune recipes/knowledge_distillation_single_device.py --config recipes/configs/llama3_2/8B_to_1B_KD_lora_single_device.yaml
litgpt litgpt/__main__.py pretrain pythia-14m --tokenizer_dir checkpoints
litgpt litgpt/__main__.py finetune_full checkpoints/EleutherAI/pythia-14m
litgpt litgpt/__main__.py finetune_lora checkpoints/EleutherAI/pythia-14m
nnunetv2 nnunetv2/run/run_training.py Dataset001_Name 2d 0
torchrl sota-implementations/ppo/ppo_mujoco.py
torchrl sota-implementations/dqn/dqn_cartpole.py
torchrl sota-implementations/ddpg/ddpg.py
torchrl sota-implementations/decision_transformer/dt.py
torchrl sota-implementations/bandits/dqn.py
paddlespeech paddlespeech/cls/exps/panns/train.py --cfg_path conf/panns.yaml
paddlespeech paddlespeech/kws/exps/mdtc/train.py --config conf/mdtc.yaml
paddlespeech paddlespeech/vector/exps/ge2e/train.py --data data --output out
paddlespeech paddlespeech/t2s/exps/waveflow/train.py --data data --output out
paddlespeech paddlespeech/t2s/exps/tacotron2/train.py --data data --output out
paddlespeech paddlespeech/t2s/exps/fastspeech2/train.py --config conf/fastspeech2.yaml --output-dir out
paddlespeech paddlespeech/t2s/exps/speedyspeech/train.py --config conf/speedyspeech.yaml --output-dir out
paddlespeech paddlespeech/t2s/exps/gan_vocoder/hifigan/train.py --config conf/hifigan.yaml --output-dir out
paddlespeech paddlespeech/s2t/exps/deepspeech2/bin/train.py --config conf/deepspeech2.yaml --output out
paddlespeech paddlespeech/s2t/exps/u2/bin/train.py --config conf/conformer.yaml --output out
paddlets paddlets/tests/models/forecasting/dl/test_mlp.py
paddlets paddlets/tests/models/forecasting/dl/test_rnn.py
paddlets paddlets/tests/models/forecasting/dl/test_transformer.py
paddlets paddlets/tests/models/classify/dl/test_cnn.py
"""


@dataclass(slots=True)
class Read:
    """How each entry point went: numbers, a name for what is missing, or neither."""

    numbers: dict[str, str] = field(default_factory=dict)
    named: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)


def folder() -> Path:
    """Where the packages lie."""
    return environment.root() / "foreign"


def fetch() -> None:
    """Unpack the packages' Python files."""
    for package in PACKAGES + REQUIRED:
        environment.unpack(package, folder() / package.replace("-", "_"))


class WithGiven:
    """A package's files and the given ones, as one bundle."""

    def __init__(self, package: AnySources, given: AnySources) -> None:
        self._both = (given, package)

    def read(self, path: str) -> bytes | None:
        """See ``core.reading.Sources``."""
        return next((data for one in self._both if (data := one.read(path)) is not None), None)

    def exists(self, path: str) -> bool:
        """Whether either has it."""
        return any(one.exists(path) for one in self._both)

    def listdir(self, path: str) -> list[str]:
        """Names of both, sorted."""
        return sorted({name for one in self._both for name in one.listdir(path)})

    def library(self, module: str) -> tuple[str, bytes] | None:
        """See ``core.reading.Sources``."""
        return self._both[1].library(module)

    def library_file(self, package: str, path: str) -> bytes | None:
        """See ``core.reading.Sources``."""
        return self._both[1].library_file(package, path)


def read_entry(package: str, entry: str, arguments: list[str]) -> Reading:
    """Read one entry point; the other packages and the oracle's libraries are on the library path."""
    own = package.partition("/")[0]
    libraries = [
        str(p) for p in folder().iterdir() if p.name != own or own == "accelerate"
    ] + environment.library_paths()
    sources: Sources = open_sources(folder() / package, library_paths=libraries)
    if (GIVEN / own).is_dir():
        sources = WithGiven(open_sources(folder() / package, library_paths=libraries), open_sources(GIVEN / own))
    launched = "distributed" in entry
    request = Request(
        entry=entry,
        arguments=arguments,
        environment=ENVIRONMENT.get(own, {})
        | ({"WORLD_SIZE": "2", "RANK": "0", "LOCAL_RANK": "0"} if launched else {}),
        world_size=2 if launched else 1,
    )
    return read(request, sources, time.process_time, Limits(seconds=SECONDS))


_MISSING = (
    "required",
    "ModuleNotFoundError",
    "ImportError",
    "not in the bundle",
    "FileNotFoundError",
    "is missing the files",
)


def absent_files(package: str, arguments: list[str]) -> list[str]:
    """Configuration files that the arguments name and the package does not hold: what is read then rests on guesses."""
    named = [Path(a).name for a in arguments if a.endswith((".yaml", ".yml", ".json"))]
    held = (folder() / package, GIVEN / package)
    return [name for name in named if not any(next(root.rglob(name), None) for root in held)]


def judge(reading: Reading, absent: list[str]) -> tuple[str, str]:
    """``numbers``, ``named`` or ``failed``, and what there is to say.

    There is no oracle here: ``numbers`` says that there are some, not that they are right.
    """
    if absent:
        told = [g for g in reading.findings.gaps.values() if any(name in f"{g.what} {g.why}" for name in absent)]
        if told or any(name in (reading.stopped or "") for name in absent):
            return "named", f"{absent[0]} is not there, and the reading says so"
        return "failed", f"{absent[0]} is not there, and the reading does not say so"
    if reading.parameters_total and reading.trace.steps:
        return "numbers", f"{reading.parameters_total:,} parameters, batch {reading.batch_size}"
    if reading.stopped:
        named = any(word in reading.stopped for word in _MISSING)
        return ("named" if named else "failed"), reading.stopped[:120]
    for gap in reading.findings.gaps.values():
        if "not in the bundle" in gap.why or "No such file" in gap.why or "cannot be opened" in gap.why:
            return "named", f"{gap.what}: {gap.why}"[:120]
    last = list(reading.findings.gaps.values())[-1:]
    return "failed", f"{last[0].what}: {last[0].why}"[:120] if last else "nothing trains"


def measure() -> Read:
    """Read them all."""
    found = Read()
    for line in ENTRIES.strip().splitlines():
        package, entry, *arguments = line.split()
        verdict, text = judge(
            read_entry(package, entry, ["" if a == "''" else a for a in arguments]), absent_files(package, arguments)
        )
        getattr(found, verdict)[line] = text
        print(f"{verdict}: {package} {entry}: {text}", file=sys.stderr, flush=True)
    return found


def rows_of(found: Read) -> list[tuple[str, str, str]]:
    """For the table."""
    total = len(found.numbers) + len(found.named) + len(found.failed)
    share = len(found.numbers) / max(1, total)
    return [
        ("other people's entry points that give numbers", f"{len(found.numbers)} of {total} ({share:.0%})", "85 %"),
        ("… that name what is missing", str(len(found.named)), "the rest"),
        ("… that do neither", str(len(found.failed)), "0"),
    ]


def failures(found: Read) -> str:
    """By cause."""
    lines = [f"- {name}: missing: {text}" for name, text in found.named.items()]
    counts = Counter(found.failed.values())
    lines += [
        f"- {count}: {text} ({', '.join(n for n, t in found.failed.items() if t == text)})"
        for text, count in counts.most_common()
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    fetch()
