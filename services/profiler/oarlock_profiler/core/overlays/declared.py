"""A task without a script: the declared model, written as the training script that its fields imply.

The text is then read like any other (``entry="declared.py"``), so that a declared task and a written one go the same
way.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

ENTRY = "declared.py"
DEFAULT_BATCH = 32
DEFAULT_SEQUENCE = 512

_LANGUAGE = re.compile(
    r"bert|ernie|electra|gpt|llama|qwen|mistral|gemma|bart|rbtl?3|(^|[-/_])(t5|opt)(-|$)", re.IGNORECASE
)
_DECODERS = re.compile(r"gpt|llama|qwen|mistral|gemma|(^|[-/_])opt-", re.IGNORECASE)
_SEQ2SEQ = re.compile(r"(^|[-/_])t5|(^|[-/_])bart", re.IGNORECASE)


def declared_source(declared: Mapping[str, Any]) -> str | None:
    """A training script for ``declared`` (framework, model_name, batch_size_per_gpu, sequence_length…), or None
    without a model name.

    Whether the name is known shows when the text is read: an unknown one leaves a gap that names it.
    """
    name = declared.get("model_name")
    if not isinstance(name, str) or not name.strip():
        return None
    name = name.strip()
    paddle = str(declared.get("framework") or "paddlepaddle").lower().startswith("paddle")
    batch = _number(declared.get("batch_size_per_gpu"), DEFAULT_BATCH)
    sequence = _number(declared.get("sequence_length"), DEFAULT_SEQUENCE)
    if _LANGUAGE.search(name):
        return (_paddle_language if paddle else _torch_language)(name, batch, sequence)
    return (_paddle_vision if paddle else _torch_vision)(name.lower().replace("-", "_"), batch)


def _number(value: object, default: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else default


def _task(name: str) -> str:
    if _SEQ2SEQ.search(name):
        return "Seq2SeqLM"
    return "CausalLM" if _DECODERS.search(name) else "SequenceClassification"


def _paddle_language(name: str, batch: int, sequence: int) -> str:
    task = _task(name).replace("Seq2SeqLM", "ConditionalGeneration")
    labels = "labels = ids" if task != "SequenceClassification" else f"labels = paddle.zeros([{batch}], dtype='int64')"
    return f"""\
import paddle
from paddlenlp.transformers import AutoModelFor{task}

model = AutoModelFor{task}.from_pretrained({name!r})
optimizer = paddle.optimizer.AdamW(learning_rate=5e-5, parameters=model.parameters())
for step in range(1000):
    ids = paddle.zeros([{batch}, {sequence}], dtype='int64')
    {labels}
    loss, logits = model(ids, labels=labels)
    loss.backward()
    optimizer.step()
    optimizer.clear_grad()
"""


def _torch_language(name: str, batch: int, sequence: int) -> str:
    task = _task(name)
    labels = (
        "labels = ids"
        if task != "SequenceClassification"
        else f"labels = torch.zeros({batch}, dtype=torch.long).cuda()"
    )
    return f"""\
import torch
from transformers import AutoModelFor{task}

model = AutoModelFor{task}.from_pretrained({name!r}).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-5)
for step in range(1000):
    ids = torch.zeros({batch}, {sequence}, dtype=torch.long).cuda()
    {labels}
    loss = model(input_ids=ids, labels=labels).loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def _paddle_vision(name: str, batch: int) -> str:
    return f"""\
import paddle
from paddle.vision import models

model = getattr(models, {name!r})(num_classes=1000)
optimizer = paddle.optimizer.Momentum(learning_rate=0.1, momentum=0.9, parameters=model.parameters())
for step in range(1000):
    images = paddle.rand([{batch}, 3, 224, 224])
    labels = paddle.zeros([{batch}], dtype='int64')
    loss = paddle.nn.functional.cross_entropy(model(images), labels)
    loss.backward()
    optimizer.step()
    optimizer.clear_grad()
"""


def _torch_vision(name: str, batch: int) -> str:
    return f"""\
import torch
from torchvision import models

model = getattr(models, {name!r})().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for step in range(1000):
    images = torch.rand({batch}, 3, 224, 224).cuda()
    labels = torch.zeros({batch}, dtype=torch.long).cuda()
    loss = torch.nn.functional.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
