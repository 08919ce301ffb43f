"""Runs an element, and all before it, on the rows that its sources give: in memory, one after another.

Each element is a group of its own, as it is when it is deployed. The work is `batch.group.GroupWork`, which a
deployed element runs, too. What one gives is written as records, and the next one reads them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import monotonic
from typing import Any

import pyarrow as pa

from pipeline_runtime.batch.gate_messages import FLUSH, TICK, Slice
from pipeline_runtime.batch.inputs import GroupInput
from pipeline_runtime.formats.schema_registry import Registries, no_registry
from pipeline_runtime.kafka.clients import KafkaSettings
from pipeline_runtime.model.preview import SHOWN_MAX, PreviewAnswer, PreviewQuestion, SampleRow
from pipeline_runtime.model.schema import StreamSchema
from pipeline_runtime.operators.expressions.casts import text_of
from pipeline_runtime.operators.sdk import SinkOperator
from pipeline_runtime.preview.path import AWAY, PathElement, Stopped, stopped_by
from pipeline_runtime.preview.shown import ShownLetters, ShownRows
from pipeline_runtime.preview.sources import FAR_MS, Outside, SourceRows, given_records, newest_records

ROWS_MAX = 50_000
"""How many rows a preview reads from outside, at most."""
ENOUGH_S = 1.2
"""A preview that has run for this long reads no more rows."""
_PIECES = (200, 2_000, 10_000)
"""How many rows are read at a time: few at first, since most elements give enough rows then."""
_STEPS_MAX = 2_000

Arrived = Mapping[str, list[list[Any]]]
"""Stream ("element.port") -> records, as kafka.ahead.pack gives them."""


def preview(
    question: PreviewQuestion,
    kafka: KafkaSettings,
    files: Mapping[str, str],
    directory: Path,
    now_ms: int,
    arrived: Arrived,
    registries: Registries = no_registry,
) -> PreviewAnswer:
    """Returns the first rows that come to the element and leave it.

    `files`: file reference -> path on this machine. `directory`: where an element would keep files; nothing
    is written there. `now_ms`: the clock at the beginning. `arrived`: what has come to connectors.
    """
    run = _Run(question, (kafka, files, directory, registries), now_ms, arrived)
    try:
        run.open()
        run.go()
    except Stopped as stopped:
        update = {"refused": stopped.refused, "at": stopped.at, "why": stopped.why}
        return run.answer().model_copy(update=update)
    return run.answer()


class _Run:
    def __init__(
        self,
        question: PreviewQuestion,
        place: tuple[KafkaSettings, Mapping[str, str], Path, Registries],
        now_ms: int,
        arrived: Arrived,
    ) -> None:
        self._question, self._arrived = question, arrived
        self._place = place
        self._now_ms = now_ms
        self._elements: list[PathElement] = []
        self._outside: dict[str, list[Outside]] = {}  # by element
        self._step_ms: int | None = None
        self._whole = self._newest = False
        schemas = {source: each for spec in question.groups for source, each in spec.schemas.items()}
        nothing = StreamSchema(fields=())
        self._inputs = {
            source: ShownRows(schemas.get(source, nothing), sample=question.sample)
            for source in question.reads.values()
        }
        self._output = ShownRows(schemas.get(self._source, nothing))
        self._letters = ShownLetters()
        self._lost: dict[str, int] = {}

    @property
    def _source(self) -> str:
        return f"{self._question.element}.out"

    # -- what is read --------------------------------------------------------------------------------

    def open(self) -> None:
        """Raises Stopped."""
        for spec in self._question.groups:
            [item] = spec.elements
            is_asked = item.id == self._question.element
            element = PathElement(spec, *self._place, self._seen if is_asked else lambda *_: None)
            self._elements.append(element)
            try:
                found = [self._opened(element, item) for item in element.facts.inputs]
            except AWAY as error:
                raise stopped_by(element.id, error) from error
            self._outside[element.id] = [each for each in found if each is not None]
        steps = [element.operator.ticks_s() for element in self._elements]
        self._step_ms = min((int(step * 1000) for step in steps if step is not None), default=None)
        for shown in (*self._inputs.values(), self._output):
            shown.newest = self._newest
        self._letters.newest = self._newest

    def _opened(self, element: PathElement, item: GroupInput) -> Outside | None:
        """Returns what an input reads from outside, or None if elements of the preview give it."""
        kafka, files, directory, _ = self._place
        if item.element in self._outside:
            return None
        given = self._question.given.get(item.source)
        if given is not None:
            return given_records(item, _records(given, item.schema.key), self._now_ms)
        if item.topic is None:
            return SourceRows(element.spec, item, files, directory, self._now_ms)
        self._newest = True
        if item.source in self._arrived:
            return given_records(item, self._arrived[item.source], self._now_ms)
        return newest_records(item, kafka, self._now_ms)

    def _seen(self, source: str, rows: pa.Table) -> None:
        if source in self._inputs:
            self._inputs[source].add_read(rows)

    # -- batches -------------------------------------------------------------------------------------

    def go(self) -> None:
        """Runs batches until enough rows have come out. Raises Stopped."""
        until_s = monotonic() + ENOUGH_S
        for rows_max in (*_PIECES, *[_PIECES[-1]] * (ROWS_MAX // _PIECES[-1])):
            self._read_on(rows_max, until_s)
            if self._whole or self._is_enough(until_s):
                break
        if self._whole and not self._newest:
            self._flush()

    @property
    def _read(self) -> int:
        return sum(each.keeper.rows for each in self._elements if self._outside.get(each.id))

    @property
    def _gives_rows(self) -> bool:
        """Returns whether the element gives rows, so that it is no sink and no view."""
        last = self._elements[-1] if self._elements else None
        asked = last is not None and last.id == self._question.element
        return asked and last is not None and not isinstance(last.operator, SinkOperator)

    def _is_enough(self, until_s: float) -> bool:
        shown = [self._output] if self._gives_rows else list(self._inputs.values())
        has_rows = all(each.count >= SHOWN_MAX for each in shown) or self._letters.count >= 2 * SHOWN_MAX
        return has_rows or self._read >= ROWS_MAX or monotonic() > until_s

    def _read_on(self, rows_max: int, until_s: float) -> None:
        outside = [each for found in self._outside.values() for each in found]
        if self._step_ms is None:
            reached = [each.reaches(rows_max) for each in outside if not each.ended]
            known = [ms for ms in reached if ms is not None]
            # Several sources go on together, as far as the slowest of them.
            self._batch(rows_max, min(known) if len(known) > 1 else self._now_ms + FAR_MS)
        else:
            for _ in range(_STEPS_MAX):
                self._now_ms += self._step_ms
                self._batch(rows_max, self._now_ms)
                if self._is_enough(until_s) or all(each.ended for each in outside):
                    break
        self._whole = all(each.ended for each in outside)

    def _batch(self, rows_max: int, until_ms: int) -> None:
        made: dict[str, pa.Table] = {}
        for element in self._elements:
            slices = []
            for each in self._outside[element.id]:
                slices += each.next(rows_max, until_ms)
                self._now_ms = max(self._now_ms, each.now_ms)
            slices += element.inside(made, self._now_ms)
            if not slices and self._step_ms is not None and element.operator.ticks_s() is not None:
                slices = [Slice(TICK, self._now_ms)]
            self._run(element, slices, made)

    def _flush(self) -> None:
        """Lets out what elements keep back until their input ends."""
        made: dict[str, pa.Table] = {}
        for element in self._elements:
            slices = element.inside(made, self._now_ms)
            if element.operator.flushes:
                self._run(element, slices, made)
                slices = [Slice(FLUSH, self._now_ms)]
            self._run(element, slices, made)

    def _run(self, element: PathElement, slices: Sequence[Slice], made: dict[str, pa.Table]) -> None:
        if not slices:
            return
        records, letters = element.run(slices)
        for source, rows in records.items():
            made[source] = pa.concat_tables([made[source], rows]) if source in made else rows
            if source == self._source:
                self._output.add_records(rows)
            elif source in self._inputs and not self._reads_itself:
                self._inputs[source].add_records(rows)
        if element.id == self._question.element:
            self._letters.add(letters)
        elif letters:
            self._lost[element.id] = self._lost.get(element.id, 0) + len(letters)

    @property
    def _reads_itself(self) -> bool:
        """Returns whether the element is on the path. The dashboard reads for a view."""
        return self._elements[-1].id == self._question.element

    # -- the answer ----------------------------------------------------------------------------------

    def answer(self) -> PreviewAnswer:
        letters = self._letters.kept
        return PreviewAnswer(
            inputs={
                port: self._inputs[source].answer(letters) for port, source in self._question.reads.items()
            },
            output=self._output.answer() if self._gives_rows else None,
            letters=letters,
            letters_count=self._letters.count,
            newest=self._newest,
            read=self._read,
            whole=self._whole and not self._newest,
            sample=self._sample(),
            lost=self._lost,
        )

    def _sample(self) -> dict[str, tuple[SampleRow, ...]]:
        if not self._question.sample:
            return {}
        return {port: self._inputs[source].as_sample() for port, source in self._question.reads.items()}


def _records(rows: Sequence[SampleRow], key: str | None) -> list[list[Any]]:
    """Returns the rows of a sample as records; see kafka.ahead.pack."""
    return [
        [
            offset,
            row.time_ms,
            None if key is None else text_of(row.values.get(key)),
            json.dumps(row.values),
            [],
        ]
        for offset, row in enumerate(rows)
    ]
