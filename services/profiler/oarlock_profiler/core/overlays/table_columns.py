"""What the model of pandas asks of the host: the columns of a file, and arrays of which only the number of rows is
not known."""

from __future__ import annotations

import csv
import datetime
import io
import math
from collections.abc import Sequence
from typing import Any

from oarlock_profiler.core.interpreter.values import Context, Unknown, Value
from oarlock_profiler.core.overlays import array_shapes as shapes
from oarlock_profiler.core.overlays.numpy_arrays import KEPT_ELEMENTS, NdArray, dtype_name
from oarlock_profiler.core.overlays.numpy_creation import as_array
from oarlock_profiler.core.overlays.registry import entry
from oarlock_profiler.core.overlays.stdlib_files import File, locate

LIBRARIES = ("oarlock_host",)

_FILE_BYTES = 16 << 20
"""Tables up to this size are parsed; of a larger one the head tells the columns, the line ends the rows."""
_HEAD_BYTES = 1 << 20
_MISSING = frozenset({"", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", "n/a", "<NA>", "#N/A"})
"""What counts as absent, from the documentation of ``pandas.read_csv``."""


@entry("oarlock_host.rows_like")
def rows_like(context: Context, row: Value, dtype: Value = "float64") -> Value:
    """An array of which only the number of rows is unknown; ``row`` is the shape of one, or an array it resembles."""
    if isinstance(row, NdArray):
        return NdArray(None, row.dtype, row=row.row if row.shape is None else row.shape[1:])
    inner = tuple(n for n in row if isinstance(n, int)) if isinstance(row, tuple | list) else ()
    return NdArray(None, dtype_name(dtype) or "float64", row=inner)


@entry("oarlock_host.has_rows")
def has_rows(context: Context, array: Value) -> Value:
    """Whether an array's number of rows is known."""
    return isinstance(array, NdArray) and bool(array.shape)


@entry("oarlock_host.side_by_side")
def side_by_side(context: Context, columns: Value) -> Value:
    """The columns of a table as one array of rows × columns."""
    arrays = [as_array(context, column) for column in columns] if isinstance(columns, list) else []
    if not arrays:
        return NdArray((0, 0), "float64")
    dtype = arrays[0].dtype
    for array in arrays[1:]:
        dtype = shapes.promote(dtype, array.dtype)
    if any(array.shape is None for array in arrays):
        return NdArray(None, dtype, row=(len(arrays),))
    rows = arrays[0].shape[0] if arrays[0].shape else 1
    data = None
    if rows * len(arrays) <= KEPT_ELEMENTS and all(array.data is not None for array in arrays):
        import numpy  # noqa: PLC0415 - only scripts that hold known arrays pay for the import

        data = numpy.stack([array.data for array in arrays], axis=1)
    return NdArray((rows, len(arrays)), dtype, None, data)


@entry("oarlock_host.text_items")
def text_items(context: Context, array: Value) -> Value:
    """The items of a column: all while they are known, else one that stands for an unknown number of them."""
    if isinstance(array, NdArray) and array.data is not None:
        return array.data.tolist()
    hint = "str" if getattr(array, "dtype", "") == "str" else None
    item = Unknown("a cell of a table", context.where, hint=hint)
    if not isinstance(array, NdArray) or array.dtype not in ("str", "object"):
        return array
    if array.shape is not None:
        return [item] * min(array.shape[0], KEPT_ELEMENTS)
    return Unknown("cells of a table", context.where, "list", item=item)


@entry("oarlock_host.period_starts")
def period_starts(context: Context, start: Value, count: Value, months: Value) -> Value:
    """``count`` dates ``months`` apart, in seconds since 1970, from the month of ``start`` (seconds)."""
    if not isinstance(start, int) or not isinstance(count, int) or not isinstance(months, int):
        return Unknown("dates that are not known", context.where, "list")
    first = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=start)
    made = []
    for step in range(min(count, KEPT_ELEMENTS)):
        year, month = divmod(first.year * 12 + first.month - 1 + step * months, 12)
        if not 1 <= year <= datetime.MAXYEAR:
            break
        made.append(int((datetime.datetime(year, month + 1, 1) - datetime.datetime(1970, 1, 1)).total_seconds()))
    return made


_FORMATS = (
    "%m/%d/%Y",
    "%d/%m/%Y",
    "%Y/%m/%d",
    "%Y%m%d",
    "%m/%d/%Y %H:%M",
    "%Y/%m/%d %H:%M",
    "%Y/%m/%d %H:%M:%S",
    "%Y-%m",
)


@entry("oarlock_host.seconds_of")
def seconds_of(context: Context, text: Value) -> Value:
    """A date as seconds since 1970, None when the text is no date."""
    if not isinstance(text, str):
        return None
    found = None
    try:
        found = datetime.datetime.fromisoformat(text.strip())
    except ValueError:
        for form in _FORMATS:
            try:
                found = datetime.datetime.strptime(text.strip(), form)
                break
            except ValueError:
                continue
    if found is None:
        return None
    return int((found.replace(tzinfo=None) - datetime.datetime(1970, 1, 1)).total_seconds())


@entry("oarlock_host.date_parts")
def date_parts(context: Context, seconds: Value) -> Value:
    """Calendar fields of a time in seconds since 1970."""
    if not isinstance(seconds, int) or not -62_135_596_800 <= seconds <= 253_402_300_799:
        return None
    moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=seconds)
    return {
        "year": moment.year, "month": moment.month, "day": moment.day, "hour": moment.hour, "minute": moment.minute,
        "second": moment.second, "dayofweek": moment.weekday(), "weekday": moment.weekday(),
        "day_of_week": moment.weekday(), "dayofyear": moment.timetuple().tm_yday,
        "day_of_year": moment.timetuple().tm_yday,
        "quarter": (moment.month + 2) // 3, "week": moment.isocalendar()[1], "text": moment.isoformat(sep=" "),
    }  # fmt: skip


@entry("oarlock_host.read_table")
def read_table(context: Any, source: Value, separator: Value = ",", header: Value = True, skip: Value = 0) -> Value:
    """A delimited file of the bundle as ``(names, columns, facts)``, or None when it is not there.

    ``columns`` are arrays, ``facts`` each column's number of distinct values, least and greatest.
    """
    text = _text(context, source)
    if text is None:
        return None
    rows_told = None
    if len(text) > _FILE_BYTES:
        rows_told = text.count("\n")
        text = text[:_HEAD_BYTES].rpartition("\n")[0]
    delimiter = separator if isinstance(separator, str) and len(separator) == 1 else None
    lines = text.splitlines()[skip if isinstance(skip, int) else 0 :]
    if delimiter is None:
        cells = [line.split() for line in lines if line.strip()]
    else:
        cells = [row for row in csv.reader(io.StringIO("\n".join(lines)), delimiter=delimiter) if row]
    if not cells:
        return None
    names: list[Value] = list(cells[0]) if header is True else list(range(len(cells[0])))
    body = cells[1:] if header is True else cells
    count = len(body) if rows_told is None else max(len(body), rows_told - (header is True))
    columns, facts = [], []
    for place in range(len(names)):
        values = [row[place] if place < len(row) else "" for row in body]
        array, known = _column(values, count)
        columns.append(array)
        facts.append(known if rows_told is None else {})
    return names, columns, facts


def _text(context: Any, source: Value) -> str | None:
    if isinstance(source, File):
        content: Any = source.content
    else:
        inside = locate(context, source)
        content = context.sources.read(inside) if inside is not None else None
    if content is None:
        return None
    return content if isinstance(content, str) else bytes(content).decode("utf-8-sig", "replace")


def _column(values: Sequence[str], count: int) -> tuple[NdArray, dict[str, Value]]:
    """One column's array of ``count`` rows and what is known of its values."""
    import numpy  # noqa: PLC0415 - only scripts whose table is in the bundle pay for the import

    present = [value.strip() for value in values if value.strip() not in _MISSING]
    for dtype, convert in (("int64", int), ("float64", float)):
        try:
            numbers: list[float] = [convert(value) for value in present]
        except (ValueError, OverflowError):
            continue
        if any(not -(2**63) <= n < 2**63 for n in numbers if math.isfinite(n)):
            continue
        whole = dtype == "int64" and len(present) == len(values)
        kept = whole and count == len(values) <= KEPT_ELEMENTS
        data = numpy.array(numbers, dtype="int64") if kept else None
        finite = [n for n in numbers if math.isfinite(n)]
        facts: dict[str, Value] = {"distinct": len(set(numbers))}
        if finite:
            facts |= {"low": min(finite), "high": max(finite)}
        return NdArray((count,), "int64" if whole else "float64", None, data), facts
    texts = [value.strip() for value in values]
    data = numpy.array(texts, dtype="str") if count == len(texts) <= KEPT_ELEMENTS else None
    words = sorted({value for value in texts if value not in _MISSING})
    facts = {"distinct": len(words)}
    if len(words) <= KEPT_ELEMENTS:
        facts["words"] = list(words)
    return NdArray((count,), "str", None, data), facts
