"""Fine-tuning tables of language models: Hugging Face's Trainer guide, PEFT's comparison, lit-gpt's and PaddleNLP's."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from benchmarks.prediction_error.cases import MIB, Case, rows

_TRAINER = """import torch
from transformers import AutoModelForSequenceClassification, Trainer, TrainingArguments


class Random(torch.utils.data.Dataset):
    def __len__(self):
        return 512

    def __getitem__(self, index):
        return {{"input_ids": torch.randint(100, 30000, (512,)), "labels": torch.tensor(1)}}


model = AutoModelForSequenceClassification.from_pretrained("bert-large-uncased", attn_implementation="eager").to("cuda")
args = TrainingArguments("out", per_device_train_batch_size={batch}, {options})


def zero_grad():
    # PyTorch 1.x kept the gradients and zeroed them.
    torch.nn.Module.zero_grad(model, set_to_none=False)


model.zero_grad = zero_grad
Trainer(model=model, args=args, train_dataset=Random()).train()
"""

_TRAINER_OPTIONS = {
    ("fp32", "AdamW"): 'optim="adamw_hf"',
    ("fp16 AMP", "AdamW"): 'optim="adamw_hf", fp16=True',
    ("fp32", "Adafactor"): 'optim="adafactor"',
    ("fp32", "Adam8bit(bnb)"): 'optim="adamw_bnb_8bit"',
}

_LORA = """import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM

model = AutoModelForCausalLM.from_pretrained("{model}", torch_dtype=torch.bfloat16{more}).to("cuda")
model.config.use_cache = False
model = get_peft_model(model, LoraConfig(r={rank}, lora_alpha={rank}, lora_dropout={dropout}, target_modules={targets}))
{dtype}
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-4)
model.train()
for step in range(100):
    ids = torch.randint(0, 30000, ({batch}, {length}), device="cuda")
    optimizer.zero_grad()
    outputs = model(input_ids=ids, attention_mask=torch.ones_like(ids), labels=ids)
    loss = outputs.loss
    loss.backward()
    optimizer.step()
"""


_FULL = """import torch
from transformers import AutoModelForCausalLM

model = AutoModelForCausalLM.from_pretrained("{model}", torch_dtype=torch.bfloat16{more}).to("cuda")
model.config.use_cache = False
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
model.train()
for step in range(100):
    ids = torch.randint(0, 30000, ({batch}, {length}), device="cuda")
    loss = model(input_ids=ids, attention_mask=torch.ones_like(ids), labels=ids).loss
    (loss / 8).backward()
    if (step + 1) % 8 == 0:
        optimizer.step()
        optimizer.zero_grad()
"""

_QUERY_AND_VALUE = "['q_proj', 'v_proj']"
# litgpt stores a tied head as a weight of its own (scripts/convert_hf_checkpoint.py).
_OWN_HEAD = ", tie_word_embeddings=False"


def low_rank(
    model: str, *, rank: int | str, targets: str, dropout: float, batch: int | str, length: int | str, **more: str
) -> str:
    """A LoRA fine-tuning script; ``dtype`` is a statement that converts the adapters, ``more`` goes to the loader."""
    given = {"dtype": "", "more": "", **more}
    return _LORA.format(model=model, rank=rank, targets=targets, dropout=dropout, batch=batch, length=length, **given)


def hugging_face(truth: Path) -> Iterator[Case]:
    """The Trainer guide of 2022: PyTorch 1.x, attention written out, the library's own AdamW."""
    for row in rows(truth / "llm_docs_tables.csv"):
        if row["source"] != "hf_perf_train_gpu_one":
            continue
        options = _TRAINER_OPTIONS[row["precision"], row["optimizer"]]
        script = _TRAINER.format(batch=row["batch_size_per_gpu"], options=options)
        yield _case(row, script, "V100 SXM2 16GB", "device", f"{row['precision']} {row['optimizer']}")


def peft(truth: Path) -> Iterator[Case]:
    """PEFT's comparison on Llama 3.2 3B: plain LoRA; batches are taken at the length that samples are cut at.

    The other kinds of adapter and the image models (FLUX.2 is not in the reader's library) are not rebuilt.
    """
    for row in rows(truth / "peft_method_comparison.csv"):
        kind = row["model"].rsplit(" + ", 1)[-1]
        plain = kind.startswith("lora/llama") and "dora" not in kind and row["optimizer"] == "AdamW"
        settings = re.search(r"peft=LORA r=(\d+) targets=(\[.*?\])", row["other_settings"])
        if not plain or settings is None:
            continue
        script = low_rank(
            "meta-llama/Llama-3.2-3B",
            rank=settings[1],
            targets=settings[2],
            dropout=0.0,
            batch=row["batch_size_per_gpu"],
            length=row["input_shape_or_seq_len"],
        )
        yield _case(row, script, "L40S", "reserved", kind)


_LITGPT = {"Llama 2 7 B": "meta-llama/Llama-2-7b-hf", "Llama 2 13 B": "meta-llama/Llama-2-13b-hf"}


def litgpt(truth: Path) -> Iterator[Case]:
    """lit-gpt's LoRA on one GPU, weights and adapters in bfloat16, rank 8 and dropout 0.05 on query and value.

    Quantised rows and models whose source is not in the reader's library (phi, StableLM) are not rebuilt.
    """
    for row in rows(truth / "llm_docs_tables.csv"):
        if (
            row["source"] != "litgpt_resource_tables"
            or row["model"] not in _LITGPT
            or not row["task"].startswith("Finetuning with LoRA on 1 GPU")
            or row["optimizer"] == ""
            or "bnb" in " ".join(row.values())
        ):
            continue
        length = re.search(r"longest sample (\d+)", row["input_shape_or_seq_len"])
        script = low_rank(
            _LITGPT[row["model"]],
            rank=8,
            targets=_QUERY_AND_VALUE,
            dropout=0.05,
            dtype="model.to(torch.bfloat16)",
            batch=row["batch_size_per_gpu"],
            length=length[1] if length else 0,
        )
        yield _case(row, script, "A100 SXM4 40GB", "allocated", "LoRA")


_HUB = {
    "gemma-2b": "google/gemma-2b",
    "gemma-7b": "google/gemma-7b",
    "llama-3-8b": "meta-llama/Meta-Llama-3-8B",
    "llama-3.1-8b": "meta-llama/Llama-3.1-8B",
    "mistral-7b-v0.2": "mistralai/Mistral-7B-v0.2",
    "phi-2": "microsoft/phi-2",
    "tiny-llama": "TinyLlama/TinyLlama-1.1B-intermediate-step-1431k-3T",
}


def litgpt_hub(truth: Path) -> Iterator[Case]:
    """litgpt's published fine-tuning configurations on one A10G: bfloat16 weights, LoRA on query and value, or full.

    Full fine-tuning accumulates over eight micro-batches. A micro-batch is padded to its longest sample; it is taken
    at the length where samples are cut. Left out as not fully specified: rows without a precision. Left out as not
    rebuilt: quantised rows, several GPUs, Gemma 2.
    """
    for row in rows(truth / "llm_docs_tables.csv"):
        model, settings = _HUB.get(row["model"]), row["other_settings"]
        if (
            row["source"] != "litgpt_config_hub"
            or model is None
            or row["precision"] != "bf16-true quantize=None"
            or "devices=1x" not in settings
            or "gemma2" in row["task"]
        ):
            continue
        rank = re.search(r"lora_r=(\d+)", settings)
        batch, length = row["batch_size_per_gpu"], row["input_shape_or_seq_len"]
        more = _OWN_HEAD if "gemma" in model else ""
        if rank is None:
            script = _FULL.format(model=model, more=more, batch=batch, length=length)
        else:
            script = low_rank(
                model,
                rank=rank[1],
                targets=_QUERY_AND_VALUE,
                dropout=0.05,
                dtype="model.to(torch.bfloat16)",
                more=more,
                batch=batch,
                length=length,
            )
        yield _case(row, script, "A10G", "allocated", row["task"].split()[-1])


def _case(row: dict[str, str], script: str, device: str, kind: str, what: str) -> Case:
    return Case(
        source=row["source"],
        name=f"{row['model'].split(' + ')[0]} {what} batch {row['batch_size_per_gpu']}",
        family="transformer",
        script=script,
        device=device,
        surroundings=row["source"],
        kind=kind,
        measured_bytes=round(float(row["measured_peak_MiB"] or 0) * MIB),
        out_of_memory=row["status"] == "OOM",
        scored=row["status"].startswith("ok"),
        group=row["model"],
        note=row["status"],
    )


_PADDLE = """import paddle
import paddle.nn.functional as F
from paddle import nn
from paddle.distributed import fleet
from paddle.distributed.fleet.meta_parallel import (
    ColumnParallelLinear, ParallelCrossEntropy, RowParallelLinear, VocabParallelEmbedding)
from paddle.distributed.fleet.utils import recompute
from paddle.distributed.sharding import group_sharded_parallel
from paddle.incubate.nn.functional import fused_rms_norm, fused_rotary_position_embedding, swiglu
from paddle.nn.functional.flash_attention import flash_attention

HIDDEN, INNER, LAYERS, HEADS, VOCABULARY = {hidden}, {inner}, {layers}, {heads}, {vocabulary}
TENSOR, SHARDING, RECOMPUTE = {tensor}, {sharding}, {recompute}
strategy = fleet.DistributedStrategy()
strategy.hybrid_configs = {{"dp_degree": 1, "mp_degree": TENSOR, "pp_degree": 1, "sharding_degree": SHARDING}}
fleet.init(is_collective=True, strategy=strategy)


class RMSNorm(nn.Layer):
    def __init__(self):
        super().__init__()
        self.weight = self.create_parameter([HIDDEN])

    def forward(self, x):
        return fused_rms_norm(x, self.weight, None, 1e-6, 2)[0]


class Layer(nn.Layer):
    def __init__(self):
        super().__init__()
        self.input_norm, self.post_norm = RMSNorm(), RMSNorm()
        self.q = ColumnParallelLinear(HIDDEN, HIDDEN, has_bias={bias}, gather_output=False)
        self.k = ColumnParallelLinear(HIDDEN, HIDDEN, has_bias={bias}, gather_output=False)
        self.v = ColumnParallelLinear(HIDDEN, HIDDEN, has_bias={bias}, gather_output=False)
        self.o = RowParallelLinear(HIDDEN, HIDDEN, has_bias=False, input_is_parallel=True)
        self.gate = ColumnParallelLinear(HIDDEN, INNER, has_bias=False, gather_output=False)
        self.up = ColumnParallelLinear(HIDDEN, INNER, has_bias=False, gather_output=False)
        self.down = RowParallelLinear(INNER, HIDDEN, has_bias=False, input_is_parallel=True)

    def forward(self, x):
        heads, size = HEADS // TENSOR, HIDDEN // HEADS
        y = self.input_norm(x)
        q = self.q(y).reshape([x.shape[0], x.shape[1], heads, size])
        k = self.k(y).reshape([x.shape[0], x.shape[1], heads, size])
        v = self.v(y).reshape([x.shape[0], x.shape[1], heads, size])
        q, k, _ = fused_rotary_position_embedding(q, k, None)
        out, _ = flash_attention(q, k, v, causal=True)
        x = x + self.o(out.reshape([x.shape[0], x.shape[1], heads * size]))
        y = self.post_norm(x)
        return x + self.down(swiglu(self.gate(y), self.up(y)))


class Model(nn.Layer):
    def __init__(self):
        super().__init__()
        self.embedding = VocabParallelEmbedding(VOCABULARY, HIDDEN)
        self.layers = nn.LayerList([Layer() for _ in range(LAYERS)])
        self.norm = RMSNorm()
        self.head = ColumnParallelLinear(HIDDEN, VOCABULARY, has_bias=False, gather_output=False)
        self.loss = ParallelCrossEntropy()

    def forward(self, ids, labels):
        x = self.embedding(ids)
        for layer in self.layers:
            x = recompute(layer, x) if RECOMPUTE else layer(x)
        logits = self.head(self.norm(x))
        return self.loss(logits.astype("float32"), labels.unsqueeze(2)).mean()


model = Model()
optimizer = paddle.optimizer.AdamW(1e-5, parameters=model.parameters(), grad_clip=nn.ClipGradByGlobalNorm(1.0))
model, optimizer = paddle.amp.decorate(model, optimizer, level="O2", dtype="bfloat16")
model, optimizer, _ = group_sharded_parallel(model, optimizer, "os_g")
for step in range(10):
    ids = paddle.randint(0, VOCABULARY, [{batch}, {length}])
    with paddle.amp.auto_cast(True, level="O2", dtype="bfloat16"):
        loss = model(ids, ids)
    loss.backward()
    optimizer.step()
    optimizer.clear_grad()
"""

# hidden, inner, layers, heads, vocabulary, bias of query, key and value
_PADDLE_MODELS: dict[str, tuple[int, int, int, int, int, bool]] = {
    "facebook/llama-7b": (4096, 11008, 32, 32, 32000, False),
    "meta-llama/Llama-2-7b": (4096, 11008, 32, 32, 32000, False),
    "linly-ai/chinese-llama-2-7b": (4096, 11008, 32, 32, 40076, False),
    "meta-llama/Llama-2-13b": (5120, 13824, 40, 40, 32000, False),
    "FlagAlpha/Llama2-Chinese-13b-Chat": (5120, 13824, 40, 40, 32000, False),
    "baichuan-inc/Baichuan2-7B-Base": (4096, 11008, 32, 32, 125696, False),
    "qwen/qwen-7b": (4096, 11008, 32, 32, 151936, True),
}


def paddlenlp(truth: Path) -> Iterator[Case]:
    """PaddleNLP's pre-training table, written with fleet's layers: bfloat16 O2, tensor parallel, sharding stage 2.

    Baichuan2-13B (attention biased by ALiBi) is not rebuilt; neither are rows of automatic parallelism.
    """
    for row in rows(truth / "paddle_and_issue_reports.csv"):
        sizes = _PADDLE_MODELS.get(row["model"])
        degrees = re.match(r"(?:tp(\d+))?sd(\d+)_stage2", row["other_settings"])
        if row["source"] != "PaddleNLP_pretrain_docs" or sizes is None or degrees is None:
            continue
        hidden, inner, layers, heads, vocabulary, bias = sizes
        script = _PADDLE.format(
            hidden=hidden,
            inner=inner,
            layers=layers,
            heads=heads,
            vocabulary=vocabulary,
            bias=bias,
            tensor=degrees[1] or 1,
            sharding=degrees[2],
            recompute=row["grad_checkpoint"] != "no",
            batch=row["batch_size_per_gpu"],
            length=row["input_shape_or_seq_len"],
        )
        yield _case(row, script, "A100 SXM4 80GB", "allocated", "pre-training")
