"""CLIP, Whisper and XLNet without the library's source. Parameters are what transformers 5.24 builds from the same configuration."""

from __future__ import annotations

import pytest

from .conftest import ReadScript

BASE = "d_model=768, n_layer=12, n_head=12, d_inner=3072, num_labels=5"


@pytest.mark.parametrize(
    ("model", "config", "options", "parameters"),
    [
        ("CLIPModel", "CLIPConfig", "", 151_277_313),
        ("CLIPTextModel", "CLIPTextConfig", "", 63_165_952),
        ("CLIPVisionModelWithProjection", "CLIPVisionConfig", "", 87_849_216),
        ("WhisperForConditionalGeneration", "WhisperConfig", "", 37_760_640),
        ("XLNetLMHeadModel", "XLNetConfig", "", 360_300_800),
        ("XLNetForSequenceClassification", "XLNetConfig", BASE, 117_312_773),
    ],
)
def test_parameters(read_script: ReadScript, model: str, config: str, options: str, parameters: int) -> None:
    reading = read_script(f"from transformers import {model}, {config}\nmodel = {model}({config}({options}))\n")
    assert reading.parameters_total == parameters
    assert not reading.findings.gaps


STEP = """
import torch
from transformers import {imported}
model = {imported}.from_pretrained({name!r})
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(3):
    loss = model({inputs}).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""


@pytest.mark.parametrize(
    ("imported", "name", "inputs", "total", "trainable"),
    [
        (
            "CLIPModel",
            "openai/clip-vit-base-patch32",
            "input_ids=torch.zeros(8, 77, dtype=torch.long), pixel_values=torch.zeros(8, 3, 224, 224), return_loss=True",
            151_277_313,
            151_277_313,
        ),
        (
            "AutoModelForSpeechSeq2Seq",
            "openai/whisper-base",
            "input_features=torch.zeros(2, 80, 3000), labels=torch.zeros(2, 40, dtype=torch.long)",
            72_593_920,
            71_825_920,
        ),
        (
            "AutoModelForSequenceClassification",
            "xlnet-base-cased",
            "input_ids=torch.zeros(8, 128, dtype=torch.long), labels=torch.zeros(8, dtype=torch.long)",
            117_310_466,
            117_310_466,
        ),
    ],
)
def test_they_train(read_script: ReadScript, imported: str, name: str, inputs: str, total: int, trainable: int) -> None:
    reading = read_script(STEP.format(imported=imported, name=name, inputs=inputs))
    assert (reading.parameters_total, reading.parameters_trainable) == (total, trainable)
    assert reading.kind == "training"
    assert not reading.findings.gaps
