"""The rows of a preview that are shown: the first ones of each stream, or the newest ones."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from pipeline_runtime.batch.rows import in_ms
from pipeline_runtime.kafka.json_rows import json_texts
from pipeline_runtime.model.plain_data import exact
from pipeline_runtime.model.preview import (
    CELL_MAX,
    SAMPLE_ROWS_MAX,
    SHOWN_MAX,
    PreviewLetter,
    PreviewRow,
    PreviewStream,
    SampleRow,
)
from pipeline_runtime.model.schema import StreamSchema

_RAW_MAX = 2_000
_REASON_MAX = 500


class ShownRows:
    """Rows of one stream: as many as are shown, or as a sample may have."""

    def __init__(self, schema: StreamSchema, *, sample: bool = False) -> None:
        self.schema = schema
        self.newest = False
        self._most = SAMPLE_ROWS_MAX if sample else SHOWN_MAX
        self.count = 0
        self._rows: list[tuple[str | None, int, dict[str, Any]]] = []

    def add_records(self, records: pa.Table) -> None:
        """Takes rows as records (batch.output.RECORDS)."""
        self.count += records.num_rows
        records = self._wanted(records)
        found = zip(
            records["key"].to_pylist(),
            records["time_ms"].to_pylist(),
            map(json.loads, records["value"].to_pylist()),
            strict=True,
        )
        self._keep(found)

    def add_read(self, rows: pa.Table) -> None:
        """Takes rows as an element reads them (batch.reader.input_schema)."""
        self.count += rows.num_rows
        rows = self._wanted(rows)
        found = zip(
            rows["_key"].to_pylist(),
            in_ms(rows["_time"]).cast(pa.int64()).to_pylist(),
            map(json.loads, json_texts(rows, self.schema).to_pylist()),
            strict=True,
        )
        self._keep(found)

    def _wanted(self, rows: pa.Table) -> pa.Table:
        return rows.slice(max(0, rows.num_rows - self._most)) if self.newest else rows.slice(0, self._most)

    def _keep(self, found: Any) -> None:
        rows = [*self._rows, *found]
        self._rows = rows[-self._most :] if self.newest else rows[: self._most]

    def answer(self, letters: Sequence[PreviewLetter] = ()) -> PreviewStream:
        """`letters` are those of the element that has read the rows: they say which it could not take."""
        names = self.schema.names
        shown = self._rows[-SHOWN_MAX:] if self.newest else self._rows[:SHOWN_MAX]
        refused = [(letter.reason, row) for letter in letters if (row := _row_of(letter)) is not None]
        return PreviewStream(
            columns=names,
            rows=tuple(
                PreviewRow(
                    key=_cut(key),
                    time_ms=time_ms,
                    values=tuple(shown_value(values.get(name)) for name in names),
                    reason=next((reason for reason, row in refused if _is_of(row, values)), None),
                )
                for key, time_ms, values in shown
            ),
            count=self.count,
        )

    def as_sample(self) -> tuple[SampleRow, ...]:
        """Returns the rows as they are."""
        return tuple(SampleRow(time_ms=time_ms, values=values) for _, time_ms, values in self._rows)


class ShownLetters:
    """Dead letters of the element."""

    def __init__(self) -> None:
        self.newest = False
        self.count = 0
        self._kept: list[PreviewLetter] = []

    def add(self, letters: Sequence[tuple[str, str | None]]) -> None:
        self.count += len(letters)
        wanted = letters[-SHOWN_MAX:] if self.newest else letters[:SHOWN_MAX]
        kept = [
            *self._kept,
            *(
                PreviewLetter(reason=reason[:_REASON_MAX], raw=(raw or "")[:_RAW_MAX])
                for reason, raw in wanted
            ),
        ]
        self._kept = kept[-SHOWN_MAX:] if self.newest else kept[:SHOWN_MAX]

    @property
    def kept(self) -> tuple[PreviewLetter, ...]:
        return tuple(self._kept)


def shown_value(value: Any) -> Any:
    """Returns a value as it is shown: a long text is cut, and a large whole number is a text."""
    if isinstance(value, str):
        return _cut(value)
    return exact(value)


def _cut(text: str | None) -> str | None:
    return text if text is None or len(text) <= CELL_MAX else f"{text[: CELL_MAX - 1]}…"


def _row_of(letter: PreviewLetter) -> dict[str, Any] | None:
    try:
        row = json.loads(letter.raw)
    except ValueError:
        return None
    return row if isinstance(row, dict) else None


def _is_of(quoted: Mapping[str, Any], values: Mapping[str, Any]) -> bool:
    """Returns whether a dead letter quotes this row. It may have fewer columns, and others."""
    common = quoted.keys() & values.keys()
    return bool(common) and all(quoted[name] == values[name] for name in common)
