"""Decodes records that are no JSON to the values that JSON would give. All such records are decoded here."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Collection, Sequence
from functools import lru_cache
from io import StringIO
from typing import Any

from pipeline_runtime.formats.avro import decoded
from pipeline_runtime.formats.avro_schema import avro_schema
from pipeline_runtime.formats.malformed import Malformed
from pipeline_runtime.formats.schema_registry import NumberedReader, Registries, has_prefix
from pipeline_runtime.model.plain_data import shown
from pipeline_runtime.model.spec import RecordFormat

CELLS_MAX = 2_000_000
"""The most cells of one record."""
_WITH_COMMA = re.compile(r"\s*[+-]?\d*,\d+(?:[eE][+-]?\d+)?\s*", re.ASCII)

ReadValue = Callable[[bytes | None], Any]


def value_reader(format: RecordFormat, numbers: frozenset[str | int], registries: Registries) -> ReadValue:
    """Returns what reads the records' values of a batch or a part of it. It raises Malformed, and
    SchemaRegistryError. Raises SchemaRegistryError.

    A value of Avro becomes what its schema says, a text itself, and CSV an array of rows: arrays of cells, or
    objects if a line names them. `numbers`: the cells, by name or place, that are to be numbers.
    """
    if format.registry is None:
        return _plain_reader(format, numbers)
    own = None if format.avro is None else avro_schema(format.avro)
    numbered = NumberedReader(registries(format.registry), own)
    return lambda value: numbered.value(_there(value))


@lru_cache(maxsize=256)
def _plain_reader(format: RecordFormat, numbers: frozenset[str | int]) -> ReadValue:
    match format.kind:
        case "avro":
            return _avro(format)
        case "csv":
            return lambda value: _rows(_text(value), format, numbers)
        case "text":
            return _text


def _text(value: bytes | None) -> str:
    try:
        return _there(value).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Malformed(f"the record is not UTF-8 text: {error.reason}") from error


def _there(value: bytes | None) -> bytes:
    if value is None:
        raise Malformed("the record is a tombstone: it has a key, and no value")
    return value


def _rows(text: str, format: RecordFormat, numbers: Collection[str | int]) -> list[Any]:
    if text.count(format.delimiter) + text.count("\n") > CELLS_MAX:
        raise Malformed(f"the record has more than {CELLS_MAX:,} cells")
    try:
        lines = [
            cells for cells in csv.reader(StringIO(text), delimiter=format.delimiter, strict=True) if cells
        ]
    except csv.Error as error:
        raise Malformed(f"the record is not CSV: {error}") from error
    if not lines:
        raise Malformed("the record is empty")
    if not format.names:
        return [_pointed(cells, range(len(cells)), format, numbers) for cells in lines]
    names = [name.strip() for name in lines[0]]
    if len(set(names)) < len(names):
        raise Malformed("two cells of the record have one name")
    return [
        dict(zip(names, _pointed(cells, names, format, numbers), strict=True))
        if len(cells) == len(names)
        else cells  # which has none of the columns, so it is refused by itself
        for cells in lines[1:]
    ]


def _pointed(
    cells: Sequence[str], names: Sequence[str | int], format: RecordFormat, numbers: Collection[str | int]
) -> list[str]:
    """Returns the cells, with a point before the decimals of numbers. Raises Malformed if one has a point
    already: nobody knows whether 1.500 is a thousand and a half."""
    if format.decimal == ".":
        return list(cells)
    for name, cell in zip(names, cells, strict=True):
        if name in numbers and "." in cell:
            raise Malformed(f'the number "{shown(cell)}" has a point, and the comma stands before decimals')
    return [
        cell.replace(",", ".") if name in numbers and _WITH_COMMA.fullmatch(cell) else cell
        for name, cell in zip(names, cells, strict=True)
    ]


def _avro(format: RecordFormat) -> ReadValue:
    assert format.avro is not None
    own = avro_schema(format.avro)

    def by_own(value: bytes | None) -> Any:
        try:
            return decoded(_there(value), own)
        except Malformed as error:
            if value is not None and has_prefix(value):
                raise Malformed(f"{error}. It may begin with a schema registry's prefix") from error
            raise

    return by_own
