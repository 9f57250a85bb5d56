"""Libraries whose results cannot be known without data: metrics, trackers. They give unknowns that say why."""

from __future__ import annotations

from typing import Any

from oarlock_profiler.core.interpreter.values import Context, Native, Unknown, Value
from oarlock_profiler.core.overlays.registry import register

LIBRARIES = (
    "evaluate",
    "wandb",
    "tensorboard",
    "tensorboardX",
    "visualdl",
    "tqdm",
    "mlflow",
    "albumentations",
    "nltk",
    "jieba",
)


def _quiet(why: str) -> Any:
    def give(context: Context, *args: Value, **kwargs: Value) -> Value:
        return Unknown(why, context.where)

    return give


for _name, _why in {
    "evaluate.load": "a metric",
    "evaluate.combine": "a metric",
    "wandb.init": "a tracked run",
    "wandb.log": "a tracked run",
    "wandb.watch": "a tracked run",
    "wandb.config": "a tracked run",
    "wandb.finish": "a tracked run",
    "tensorboard.program.TensorBoard": "a log server",
    "tensorboardX.SummaryWriter": "a log writer",
    "visualdl.LogWriter": "a log writer",
    "mlflow.start_run": "a tracked run",
    "mlflow.log_metric": "a tracked run",
    "nltk.download": "a download",
    "nltk.word_tokenize": "words of a text",
    "jieba.cut": "words of a text",
    "jieba.lcut": "words of a text",
}.items():
    register(_name, Native(_name, _quiet(_why)))
