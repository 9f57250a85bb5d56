"""The library models that the reader is measured on: each case's source builds ``model``, here and in the framework."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.oracles import environment
from benchmarks.reader import packages

HERE = Path(__file__).parent
PADDLE_SUITES = ("paddle.vision", "paddleclas", "paddleseg", "paddledet")


def framework(suite: str) -> str:
    """Whose layers a suite's models are made of."""
    return "paddle" if suite in PADDLE_SUITES else "torch"


@dataclass(frozen=True, slots=True)
class Case:
    """``source`` defines ``model``; ``inputs`` is an expression over ``batch``; ``batches`` are the sizes stepped."""

    suite: str
    name: str
    source: str
    inputs: str = ""
    batches: tuple[int, ...] = ()

    @property
    def framework(self) -> str:
        """Whose layers it is made of."""
        return framework(self.suite)

    @property
    def key(self) -> str:
        """Unique among all suites."""
        return f"{self.suite}:{self.name}"

    def as_json(self) -> dict[str, Any]:
        """What the oracle's script takes."""
        return {
            "framework": self.framework,
            "source": self.source,
            "inputs": self.inputs,
            "batches": list(self.batches),
        }


PADDLE = [
    "resnet18",
    "resnet34",
    "resnet50",
    "resnet101",
    "resnet152",
    "resnext50_32x4d",
    "resnext50_64x4d",
    "resnext101_32x4d",
    "resnext101_64x4d",
    "resnext152_32x4d",
    "resnext152_64x4d",
    "wide_resnet50_2",
    "wide_resnet101_2",
    "vgg11",
    "vgg13",
    "vgg16",
    "vgg19",
    "mobilenet_v1",
    "mobilenet_v2",
    "mobilenet_v3_small",
    "mobilenet_v3_large",
    "densenet121",
    "densenet161",
    "densenet169",
    "densenet201",
    "densenet264",
    "alexnet",
    "inception_v3",
    "squeezenet1_0",
    "squeezenet1_1",
    "googlenet",
    "shufflenet_v2_x0_25",
    "shufflenet_v2_x0_33",
    "shufflenet_v2_x0_5",
    "shufflenet_v2_x1_0",
    "shufflenet_v2_x1_5",
    "shufflenet_v2_x2_0",
    "shufflenet_v2_swish",
    "LeNet",
]
TORCHVISION = [
    "alexnet",
    "convnext_base",
    "convnext_large",
    "convnext_small",
    "convnext_tiny",
    "densenet121",
    "densenet161",
    "densenet169",
    "densenet201",
    "efficientnet_b0",
    "efficientnet_b1",
    "efficientnet_b2",
    "efficientnet_b3",
    "efficientnet_b4",
    "efficientnet_b5",
    "efficientnet_b6",
    "efficientnet_b7",
    "efficientnet_v2_l",
    "efficientnet_v2_m",
    "efficientnet_v2_s",
    "googlenet",
    "inception_v3",
    "maxvit_t",
    "mnasnet0_5",
    "mnasnet0_75",
    "mnasnet1_0",
    "mnasnet1_3",
    "mobilenet_v2",
    "mobilenet_v3_large",
    "mobilenet_v3_small",
    "regnet_x_16gf",
    "regnet_x_1_6gf",
    "regnet_x_32gf",
    "regnet_x_3_2gf",
    "regnet_x_400mf",
    "regnet_x_800mf",
    "regnet_x_8gf",
    "regnet_y_128gf",
    "regnet_y_16gf",
    "regnet_y_1_6gf",
    "regnet_y_32gf",
    "regnet_y_3_2gf",
    "regnet_y_400mf",
    "regnet_y_800mf",
    "regnet_y_8gf",
    "resnet101",
    "resnet152",
    "resnet18",
    "resnet34",
    "resnet50",
    "resnext101_32x8d",
    "resnext101_64x4d",
    "resnext50_32x4d",
    "shufflenet_v2_x0_5",
    "shufflenet_v2_x1_0",
    "shufflenet_v2_x1_5",
    "shufflenet_v2_x2_0",
    "squeezenet1_0",
    "squeezenet1_1",
    "swin_b",
    "swin_s",
    "swin_t",
    "swin_v2_b",
    "swin_v2_s",
    "swin_v2_t",
    "vgg11",
    "vgg11_bn",
    "vgg13",
    "vgg13_bn",
    "vgg16",
    "vgg16_bn",
    "vgg19",
    "vgg19_bn",
    "vit_b_16",
    "vit_b_32",
    "vit_h_14",
    "vit_l_16",
    "vit_l_32",
    "wide_resnet101_2",
    "wide_resnet50_2",
    "segmentation.deeplabv3_mobilenet_v3_large",
    "segmentation.deeplabv3_resnet101",
    "segmentation.deeplabv3_resnet50",
    "segmentation.fcn_resnet101",
    "segmentation.fcn_resnet50",
    "segmentation.lraspp_mobilenet_v3_large",
    "detection.fasterrcnn_mobilenet_v3_large_320_fpn",
    "detection.fasterrcnn_mobilenet_v3_large_fpn",
    "detection.fasterrcnn_resnet50_fpn",
    "detection.fasterrcnn_resnet50_fpn_v2",
    "detection.fcos_resnet50_fpn",
    "detection.keypointrcnn_resnet50_fpn",
    "detection.maskrcnn_resnet50_fpn",
    "detection.maskrcnn_resnet50_fpn_v2",
    "detection.retinanet_resnet50_fpn",
    "detection.retinanet_resnet50_fpn_v2",
    "detection.ssd300_vgg16",
    "detection.ssdlite320_mobilenet_v3_large",
    "video.mc3_18",
    "video.mvit_v1_b",
    "video.mvit_v2_s",
    "video.r2plus1d_18",
    "video.r3d_18",
    "video.s3d",
    "video.swin3d_b",
    "video.swin3d_s",
    "video.swin3d_t",
    "optical_flow.raft_large",
    "optical_flow.raft_small",
]
TORCHVISION_RUN = [
    "alexnet",
    "convnext_tiny",
    "densenet121",
    "efficientnet_b0",
    "efficientnet_v2_s",
    "googlenet",
    "inception_v3",
    "maxvit_t",
    "mnasnet1_0",
    "mobilenet_v2",
    "mobilenet_v3_large",
    "regnet_x_400mf",
    "regnet_y_800mf",
    "resnet18",
    "resnet50",
    "resnext50_32x4d",
    "shufflenet_v2_x1_0",
    "squeezenet1_0",
    "swin_t",
    "swin_v2_t",
    "vgg11",
    "vgg11_bn",
    "vit_b_16",
    "wide_resnet50_2",
    "segmentation.deeplabv3_resnet50",
    "segmentation.fcn_resnet50",
    "segmentation.lraspp_mobilenet_v3_large",
]
_SIZES = {"inception_v3": 299, "segmentation.deeplabv3_resnet50": 128, "segmentation.fcn_resnet50": 128}

TRANSFORMERS = [
    "BertModel",
    "BertForMaskedLM",
    "BertForSequenceClassification",
    "RobertaForMaskedLM",
    "DistilBertForSequenceClassification",
    "ElectraForPreTraining",
    "XLNetLMHeadModel",
    "AlbertForMaskedLM",
    "DebertaV2ForSequenceClassification",
    "DebertaForMaskedLM",
    "MPNetForMaskedLM",
    "XLMRobertaForTokenClassification",
    "CamembertForQuestionAnswering",
    "LongformerForMaskedLM",
    "BigBirdForMaskedLM",
    "FNetForMaskedLM",
    "ConvBertForMaskedLM",
    "RoFormerForMaskedLM",
    "ModernBertForMaskedLM",
    "GPT2LMHeadModel",
    "OPTForCausalLM",
    "GPTNeoForCausalLM",
    "GPTNeoXForCausalLM",
    "GPTJForCausalLM",
    "BloomForCausalLM",
    "FalconForCausalLM",
    "MptForCausalLM",
    "LlamaForCausalLM",
    "Qwen2ForCausalLM",
    "Qwen3ForCausalLM",
    "GemmaForCausalLM",
    "Gemma2ForCausalLM",
    "MistralForCausalLM",
    "MixtralForCausalLM",
    "Qwen2MoeForCausalLM",
    "PhiForCausalLM",
    "Phi3ForCausalLM",
    "StableLmForCausalLM",
    "CohereForCausalLM",
    "OlmoForCausalLM",
    "GraniteForCausalLM",
    "MambaForCausalLM",
    "Mamba2ForCausalLM",
    "T5ForConditionalGeneration",
    "MT5ForConditionalGeneration",
    "BartForConditionalGeneration",
    "PegasusForConditionalGeneration",
    "MBartForConditionalGeneration",
    "MarianMTModel",
    "WhisperForConditionalGeneration",
    "Wav2Vec2ForCTC",
    "HubertForCTC",
    "ASTForAudioClassification",
    "ViTForImageClassification",
    "DeiTForImageClassification",
    "BeitForImageClassification",
    "SwinForImageClassification",
    "Swinv2ForImageClassification",
    "ConvNextForImageClassification",
    "ResNetForImageClassification",
    "SegformerForSemanticSegmentation",
    "Dinov2ForImageClassification",
    "CLIPModel",
    "SiglipModel",
    "BlipForConditionalGeneration",
    "ViTMAEForPreTraining",
]
_TEXT = "{'input_ids': torch.ones(batch, 64, dtype=torch.long)}"
_IMAGE = "{'pixel_values': torch.randn(batch, 3, 224, 224)}"
TRANSFORMERS_RUN = {
    "BertModel": _TEXT,
    "RobertaForMaskedLM": _TEXT,
    "DistilBertForSequenceClassification": _TEXT,
    "ElectraForPreTraining": _TEXT,
    "AlbertForMaskedLM": _TEXT,
    "GPT2LMHeadModel": _TEXT,
    "OPTForCausalLM": _TEXT,
    "GPTNeoForCausalLM": _TEXT,
    "T5ForConditionalGeneration": _TEXT[:-1] + ", 'labels': torch.ones(batch, 32, dtype=torch.long)}",
    "BartForConditionalGeneration": _TEXT,
    "ViTForImageClassification": _IMAGE,
    "SwinForImageClassification": _IMAGE,
    "ConvNextForImageClassification": _IMAGE,
}
CONFIG_ARGUMENTS = {"T5ForConditionalGeneration": "decoder_start_token_id=0"}
SMALL = ("LlamaForCausalLM", "Qwen2ForCausalLM", "MistralForCausalLM", "GemmaForCausalLM")
"""Stepped with two layers: whole, they do not fit the machine that the oracle runs on."""
TIMM_RUN = 30
"""How many of the timm sample are stepped as well."""


_TAILS = (
    "ForMaskedLM", "ForSequenceClassification", "ForCausalLM", "ForPreTraining", "ForTokenClassification",
    "ForQuestionAnswering", "LMHeadModel", "ForConditionalGeneration", "ForImageClassification", "ForCTC",
    "ForAudioClassification", "ForSemanticSegmentation", "MTModel", "Model",
)  # fmt: skip


def _config(model: str) -> str:
    for tail in _TAILS:
        if model.endswith(tail):
            return model.removesuffix(tail) + "Config"
    raise ValueError(model)


def _paddle(name: str) -> Case:
    source = f"import paddle\nfrom paddle.vision import models\nmodel = models.{name}()\n"
    shape = "batch, 1, 28, 28" if name == "LeNet" else "batch, 3, 224, 224"
    return Case("paddle.vision", name, source, f"(paddle.randn([{shape}]),)", (2, 4))


def _torchvision(name: str) -> Case:
    weights = ", weights_backbone=None" if name.startswith(("segmentation", "detection")) else ""
    source = f"import torch\nimport torchvision\nmodel = torchvision.models.{name}(weights=None{weights})\n"
    size = _SIZES.get(name, 224)
    return Case(
        "torchvision",
        name,
        source,
        f"(torch.randn(batch, 3, {size}, {size}),)",
        (2, 4) if name in TORCHVISION_RUN else (),
    )


def _transformers(name: str) -> Case:
    config = _config(name)
    arguments = CONFIG_ARGUMENTS.get(name, "")
    source = f"import torch\nfrom transformers import {config}, {name}\nmodel = {name}({config}({arguments}))\n"
    return Case(
        "transformers", name, source, TRANSFORMERS_RUN.get(name, ""), (2, 4) if name in TRANSFORMERS_RUN else ()
    )


def _transformers_small(name: str) -> Case:
    config = _config(name)
    source = f"import torch\nfrom transformers import {config}, {name}\nmodel = {name}({config}(num_hidden_layers=2))\n"
    return Case("transformers", f"{name} of two layers", source, _TEXT, (2, 4))


def _timm(names: list[str]) -> list[Case]:
    cases = []
    step = max(1, len(names) // TIMM_RUN)
    for index, name in enumerate(names):
        source = f"import torch\nimport timm\nmodel = timm.create_model({name!r})\n"
        inputs = "(torch.randn(batch, *model.default_cfg['input_size']),)"
        cases.append(
            Case("timm", name, source, inputs, (2, 4) if index % step == 0 and index < step * TIMM_RUN else ())
        )
    return cases


def cases(suites: tuple[str, ...] = ()) -> list[Case]:
    """All cases, or those of the named suites."""
    found = (
        [_paddle(n) for n in PADDLE] + [_torchvision(n) for n in TORCHVISION] + [_transformers(n) for n in TRANSFORMERS]
    )
    found += [_transformers_small(n) for n in SMALL]
    found += _timm((HERE / "timm_sample.txt").read_text().split())
    for suite in packages.SUITES:
        if not suites or suite in suites:
            found += [Case(suite, *named) for named in packages.discover(suite, environment.root() / "src")]
    return [case for case in found if not suites or case.suite in suites]
