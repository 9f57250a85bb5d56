"""Bytes of a source file to text: byte-order marks, declared encodings, null bytes."""

from __future__ import annotations

import codecs
import io
import tokenize


class Undecodable(Exception):
    """Why the bytes are not source text."""


_SAFE = {"utf-8", "utf-8-sig", "utf8", "ascii", "us-ascii", "latin-1", "iso-8859-1", "iso-8859-15", "cp1252", "gbk",
         "gb2312", "gb18030", "big5", "euc-jp", "shift_jis", "euc-kr", "koi8-r", "cp936", "cp1251"}  # fmt: skip


def decode(data: bytes) -> str | Undecodable:
    """The text, by the file's own declaration, else UTF-8, else Latin-1."""
    if b"\x00" in data and not data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return Undecodable("the file holds null bytes: it is not Python source")
    try:
        if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            text = data.decode("utf-16")
            return Undecodable("the file holds null bytes") if "\x00" in text else text
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        if encoding.lower() not in _SAFE:
            encoding = "utf-8"
        return data.decode(encoding)
    except (SyntaxError, UnicodeDecodeError, LookupError):
        pass
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("latin-1")
