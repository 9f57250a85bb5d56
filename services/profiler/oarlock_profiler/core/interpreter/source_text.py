"""Bytes of a source file to text: byte-order marks, declared encodings, null bytes."""

# ruff: noqa: SIM905 - a list of names reads best as words

from __future__ import annotations

import codecs
import re


class Undecodable(Exception):
    """Why the bytes are not source text."""


_SAFE = frozenset(
    "utf-8 utf-8-sig utf8 ascii us-ascii latin-1 latin1 iso-8859-1 iso-8859-15 cp1252 cp1251 cp936 gbk gb2312 gb18030 "
    "big5 euc-jp euc-kr shift-jis koi8-r utf-16 utf16 utf-16-le utf-16-be utf-32".split()
)
"""What a file may declare, and what texts of a script are turned into. Not every codec of the host: a name would make
it import a module, and ``punycode`` takes hours."""
_DECLARED = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
_BLANK = re.compile(rb"^[ \t\f]*(?:[#\r\n]|$)")


def is_plain(encoding: str) -> bool:
    """Whether text may be turned into ``encoding`` and back: in a moment, with nothing imported that a script chose."""
    return encoding.lower().replace("_", "-") in _SAFE


def _declared(data: bytes) -> str | None:
    """The encoding that one of the first two lines names (PEP 263), if it is one of ours."""
    lines = data[:2000].split(b"\n", 2)
    for line in lines[:2]:
        found = _DECLARED.match(line)
        if found is not None:
            name = found[1].decode("ascii", "replace")
            return name if is_plain(name) else None
        if not _BLANK.match(line):
            break
    return None


def decode(data: bytes) -> str | Undecodable:
    """The text, by the file's own declaration, else UTF-8, else Latin-1."""
    if b"\x00" in data and not data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return Undecodable("the file holds null bytes: it is not Python source")
    try:
        if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            text = data.decode("utf-16")
            return Undecodable("the file holds null bytes") if "\x00" in text else text
        if not data.startswith(codecs.BOM_UTF8):
            return data.decode(_declared(data) or "utf-8")
        return data.decode("utf-8-sig")
    except (UnicodeDecodeError, LookupError):
        pass
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("latin-1")
