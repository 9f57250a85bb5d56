"""Tokenizers of ``tokenizers``, ``tiktoken`` and ``sentencepiece``: lists of ids whose length depends on the text.

The size of a vocabulary is known where its file lies in the bundle, or where it is published.
"""

from __future__ import annotations

import json
from typing import Any

from oarlock_profiler.core.interpreter.values import MISSING, Context, HostObject, Native, Unknown, Value
from oarlock_profiler.core.overlays.registry import entry, native_class, register
from oarlock_profiler.core.overlays.stdlib_files import File, content_of, open_file

LIBRARIES = ("tokenizers", "tiktoken", "sentencepiece")

_PUBLISHED = {
    "gpt2": 50257, "r50k_base": 50257, "p50k_base": 50281, "p50k_edit": 50284, "cl100k_base": 100277,
    "o200k_base": 200019,
}  # fmt: skip
"""``n_vocab`` of tiktoken's encodings (tiktoken_ext/openai_public.py)."""
_WHY = "the tokens of a text"


def _ids(context: Context) -> Unknown:
    return Unknown(_WHY, context.where, "list", item=Unknown(_WHY, context.where, "int"))


class Encoding(HostObject):
    """What ``tokenizers`` makes of a text."""

    def py_type(self) -> str:
        return "tokenizers.Encoding"

    def py_getattr(self, context: Context, name: str) -> Value:
        if name in ("ids", "attention_mask", "type_ids", "special_tokens_mask", "tokens", "offsets"):
            return _ids(context)
        return MISSING

    def py_len(self, context: Context) -> Value:
        return Unknown(_WHY, context.where, "int", 0)


class Tokenizer(HostObject):
    """A tokenizer; ``size`` is its vocabulary, None where it is not known."""

    def __init__(self, name: str, size: int | None = None) -> None:
        self.name = name
        self.size = size

    def py_type(self) -> str:
        return self.name

    def _size(self, context: Context, *_args: Value, **_options: Value) -> Value:
        return self.size or Unknown(
            "the size of a vocabulary that is in no file of the bundle", context.where, "int", 1
        )

    def py_len(self, context: Context) -> Value:
        return self._size(context)

    def py_getattr(self, context: Context, name: str) -> Value:
        if name in _SIZES:
            return Native(f"{self.name}.{name}", self._size)
        if name in ("n_vocab", "max_token_value", "eot_token"):
            return self._size(context)
        made = _METHODS.get(name)
        if made is not None:
            return Native(f"{self.name}.{name}", made)
        return Native(f"{self.name}.{name}", lambda _m, *_a, **_k: None) if not name.startswith("__") else MISSING

    def py_setattr(self, context: Context, name: str, value: Value) -> bool:
        return True

    def py_call(self, context: Context, args: Any, kwargs: Any) -> Value:
        return _ids(context)


_SIZES = ("get_vocab_size", "vocab_size", "get_piece_size", "piece_size", "GetPieceSize")


def _encoding(context: Context, *_args: Value, **_options: Value) -> Value:
    return Encoding()


def _encodings(context: Context, *_args: Value, **_options: Value) -> Value:
    return Unknown(_WHY, context.where, "list", item=Encoding())


def _listed(context: Context, *_args: Value, **_options: Value) -> Value:
    return _ids(context)


def _text(context: Context, *_args: Value, **_options: Value) -> Value:
    return Unknown("text made of tokens", context.where, "str")


def _id(context: Context, *_args: Value, **_options: Value) -> Value:
    return Unknown("the id of a token", context.where, "int", 0)


_METHODS: dict[str, Any] = {
    **dict.fromkeys(("encode_ordinary", "EncodeAsIds", "encode_as_ids", "encode_as_pieces", "EncodeAsPieces"), _listed),
    **dict.fromkeys(("decode", "DecodeIds", "decode_ids", "decode_pieces", "id_to_piece", "id_to_token"), _text),
    **dict.fromkeys(("token_to_id", "piece_to_id", "PieceToId", "bos_id", "eos_id", "pad_id", "unk_id"), _id),
}  # fmt: skip


class _Encoding(Tokenizer):
    """``encode`` gives an object in ``tokenizers``, a list elsewhere."""

    def py_getattr(self, context: Context, name: str) -> Value:
        if name in ("encode", "encode_batch", "encode_ordinary_batch"):
            made = _encoding if name == "encode" else _encodings
            plain = self.name != "tokenizers.Tokenizer"
            return Native(f"{self.name}.{name}", _listed if plain else made)
        return super().py_getattr(context, name)


def _vocabulary(context: Context, path: Value) -> int | None:
    file = open_file(context, path)
    text = content_of(context, file) if isinstance(file, File) else None
    try:
        vocabulary = json.loads(text)["model"]["vocab"] if isinstance(text, str) else None
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return len(vocabulary) if vocabulary else None


def _from_file(context: Context, path: Value = None, *_args: Value, **_options: Value) -> Value:
    return _Encoding("tokenizers.Tokenizer", _vocabulary(context, path))


def _unknown_one(context: Context, *_args: Value, **_options: Value) -> Value:
    return _Encoding("tokenizers.Tokenizer")


def _new(context: Context, _cls: Value = None, *_args: Value, **_options: Value) -> Value:
    return _Encoding("tokenizers.Tokenizer")


register("tokenizers.Tokenizer", native_class("tokenizers.Tokenizer", __new__=_new))
register("tokenizers.Tokenizer.from_file", Native("tokenizers.Tokenizer.from_file", _from_file))
for _name in ("from_pretrained", "from_str", "from_buffer"):
    register(f"tokenizers.Tokenizer.{_name}", Native(f"tokenizers.Tokenizer.{_name}", _unknown_one))
for _name in ("ByteLevelBPETokenizer", "BertWordPieceTokenizer", "CharBPETokenizer", "SentencePieceBPETokenizer"):
    register(f"tokenizers.{_name}", Native(f"tokenizers.{_name}", _unknown_one))


@entry("tiktoken.get_encoding", "tiktoken.encoding_for_model")
def get_encoding(context: Context, name: Value = None, *_args: Value, **_options: Value) -> Value:
    """One of the published encodings."""
    return _Encoding("tiktoken.Encoding", _PUBLISHED.get(name) if isinstance(name, str) else None)


@entry("tiktoken.Encoding", "sentencepiece.SentencePieceProcessor")
def sentence_piece(context: Context, *_args: Value, **_options: Value) -> Value:
    """A model that lies in a file of its own."""
    return _Encoding("sentencepiece.SentencePieceProcessor")
