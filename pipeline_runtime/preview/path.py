"""The elements from a source to the previewed element. Each does the same work as when it is deployed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from pipeline_runtime.batch.facts import GroupFacts
from pipeline_runtime.batch.gate_messages import Slice
from pipeline_runtime.batch.group import GroupWork
from pipeline_runtime.batch.output import RECORDS
from pipeline_runtime.batch.reader import GroupReader
from pipeline_runtime.formats.schema_registry import Registries, SchemaRegistryError
from pipeline_runtime.kafka.arrow_batches import KEY, TIME_MS
from pipeline_runtime.kafka.clients import KafkaError, KafkaSettings
from pipeline_runtime.kafka.json_rows import json_texts
from pipeline_runtime.kafka.partition_reader import RangeGone, RangeUnreadable
from pipeline_runtime.model.preview import Refusal
from pipeline_runtime.model.spec import GroupSpec
from pipeline_runtime.operators.sdk import DataFrameOperator
from pipeline_runtime.preview.keeper import PreviewKeeper

AWAY = (KafkaError, RangeGone, RangeUnreadable, SchemaRegistryError, OSError)
"""What is raised when something outside cannot be reached."""
_WHY_MAX = 500

Seen = Callable[[str, pa.Table], None]
"""Is told the rows of a stream ("element.port") as an element reads them."""


class Stopped(Exception):
    """The preview cannot go on. `at` is the element where it stopped."""

    def __init__(self, refused: Refusal, at: str, why: str = "") -> None:
        super().__init__(why)
        self.refused: Refusal = refused
        self.at = at
        self.why = why


class PathElement:
    """One element, as a group of its own."""

    def __init__(
        self,
        spec: GroupSpec,
        kafka: KafkaSettings,
        files: Mapping[str, str],
        directory: Path,
        registries: Registries,
        seen: Seen,
    ) -> None:
        """Raises Stopped if it cannot be previewed."""
        [item] = spec.elements
        self.id = item.id
        self.spec = spec = _on_time(spec)
        self.facts = GroupFacts(spec, files, directory)
        self.operator = self.facts.operators[self.id]
        if isinstance(self.operator, DataFrameOperator):
            raise Stopped("spark", self.id)
        self.keeper = PreviewKeeper(spec, kafka, files, directory)
        with _told(self.id):
            self._work = GroupWork(self.keeper, _Reader(self.keeper, registries, seen))
        self._offsets: dict[str, int] = {}  # of the streams inside that it has read

    def inside(self, made: Mapping[str, pa.Table], now_ms: int) -> list[Slice]:
        """Returns slices of what the elements before it have made: records by stream."""
        slices = []
        for item in self.facts.inputs:
            rows = made.get(item.source)
            if rows is None or not rows.num_rows:
                continue
            first = self._offsets.get(item.source, 0)
            self._offsets[item.source] = end = first + rows.num_rows
            slices.append(Slice(item.index, now_ms, 0, first, end, _packed(rows, first)))
        return slices

    def run(self, slices: Sequence[Slice]) -> tuple[dict[str, pa.Table], list[tuple[str, str]]]:
        """Returns what it makes, as records by stream, and its dead letters: reason and row. Raises
        Stopped."""
        with _told(self.id):
            output = self._work.run(slices, 0)
        letters = [(reject.reason, reject.raw) for reject in self.keeper.take_rejects()]
        letters += zip(output.letters["reason"].to_pylist(), output.letters["raw"].to_pylist(), strict=True)
        return {**output.records, **self._as_records(output.rows)}, letters

    def _as_records(self, streams: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
        """Returns records of the rows that leave as columns."""
        found = {}
        for source, rows in streams.items():
            columns = [rows[KEY], rows[TIME_MS], json_texts(rows, self.spec.schemas[source])]
            found[source] = pa.table(columns, schema=RECORDS)
        return found


class _Reader(GroupReader):
    def __init__(self, keeper: PreviewKeeper, registries: Registries, seen: Seen) -> None:
        super().__init__(keeper, registries)
        self._seen = seen

    def read(self, part: Slice) -> Iterator[pa.Table]:
        for rows in super().read(part):
            self._seen(self.inputs[part.input].source, rows)
            yield rows


@contextmanager
def _told(element: str) -> Iterator[None]:
    """Says at which element something was raised."""
    try:
        yield
    except Exception as error:
        raise stopped_by(element, error) from error


def stopped_by(element: str, error: Exception) -> Stopped:
    """Returns what ends the preview when the element's work has raised `error`."""
    refused: Refusal = "unreachable" if isinstance(error, AWAY) else "failed"
    is_sentence = isinstance(error, SchemaRegistryError)
    why = str(error) if is_sentence else f"{type(error).__name__}: {error}"
    return Stopped(refused, element, why[:_WHY_MAX])


def _on_time(spec: GroupSpec) -> GroupSpec:
    """A source that does not catch up would move its clock, since a preview reads ahead of it."""
    [item] = spec.elements
    if item.params.get("catch_up") is not False:
        return spec
    return spec.model_copy(
        update={"elements": (item.model_copy(update={"params": {**item.params, "catch_up": True}}),)}
    )


def _packed(records: pa.Table, first: int) -> list[list[Any]]:
    """Returns records (batch.output.RECORDS) as kafka.ahead.pack gives them."""
    rows = zip(
        records["time_ms"].to_pylist(), records["key"].to_pylist(), records["value"].to_pylist(), strict=True
    )
    return [[offset, time_ms, key, value, []] for offset, (time_ms, key, value) in enumerate(rows, first)]
