"""State: where a signal is highest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import Field

from pipeline_runtime.model.schema import Field as SchemaField, FieldType, StreamSchema
from pipeline_runtime.operators.by_key import EACH_KEY, from_state, to_state
from pipeline_runtime.operators.columns import NUMERIC, ColumnName, NumericColumn, SchemaCheck
from pipeline_runtime.operators.key_columns import KeyColumns
from pipeline_runtime.operators.keyed_rows import KeyedRows
from pipeline_runtime.operators.lineage import Came, Found, TracedRow, is_same, ms_in, with_value
from pipeline_runtime.operators.sdk import Params


class PeakDetectionParams(Params):
    column: NumericColumn = Field(description="the column of numbers that is the signal")
    height: float = Field(
        title="Least height of a peak", description="only values of at least this height are peaks"
    )
    distance_s: float = Field(
        default=0.0,
        ge=0,
        le=86_400,
        title="Least time between two peaks, in seconds",
        description="if peaks are at most so far apart in time, only the highest counts",
    )
    also: tuple[ColumnName, ...] = Field(
        default=(),
        max_length=50,
        title="More columns to copy",
        description="more columns to copy from the peak's row",
        json_schema_extra={"x-item": "column"},
    )
    key: ColumnName | None = Field(default=None, title="For each", description=EACH_KEY)


class PeakDetection(KeyColumns):
    """Emits the peaks of a signal, for each key. A peak is a value of at least `height` that is higher than
    the nearest different values before and after it. If the top is flat, its first value is the peak.

    If peaks are at most `distance_s` apart, only the highest counts, and the first of equal ones. So the
    element reports a peak when more than `distance_s` have passed after it. The event time is that of the
    peak itself. The element takes rows in the order in which they arrive, and ignores null.

    Output: the key's column, if there is one, the column (the peak's height), `since_last_s` (the time since
    the last reported peak, such as from heartbeat to heartbeat), and the columns of `also` with their values
    in the peak's row, such as the signal before a filter.
    """

    type = "peak-detection"
    title = "Peak detection"
    summary = "Finds the peaks of a signal and the time between them"
    category = "state"
    icon = "mountain"
    Params = PeakDetectionParams
    state_params = frozenset({"column", "key"})
    other_columns = "more"
    keeps = "the last values and the peak that it may report next"
    passes_on = False
    example = {"column": "ecg", "height": 0.5, "distance_s": 0.2}

    params: PeakDetectionParams

    def came_from(self, made: TracedRow, inputs: Mapping[str, StreamSchema]) -> Mapping[str, Came]:
        column, is_mine = self.params.column, self.is_of_key(made)
        last_ms = made.time_ms - (ms_in(made.values.get("since_last_s")) or 0)

        def chosen(rows: Sequence[TracedRow]) -> Found:
            own = with_value((row for row in rows if is_mine(row)), column)
            peak = next((at for at, row in enumerate(own) if is_same(made, {column: column})(row)), None)
            if peak is None:
                return Found(())
            # From the last row before the peak before it that was lower, to the first that shows that the
            # peak is over.
            last = next((at for at, row in enumerate(own[:peak]) if row.time_ms == last_ms), peak)
            start = _lower_before(own, last, column)
            return Found(own[start : self._over_place(own, peak) + 1], whole=start > 0)

        return {"in": Came(None, None, chosen)}

    def _over_place(self, rows: Sequence[TracedRow], peak: int) -> int:
        column = self.params.column
        for place in range(peak + 1, len(rows)):
            changed = rows[place].values[column] != rows[place - 1].values[column]
            if changed and self._is_over([rows[peak].time_ms], rows[place].time_ms):
                return place
        return len(rows)

    def output_schema(self, inputs: Mapping[str, StreamSchema]) -> StreamSchema:
        schema = inputs["in"]
        with SchemaCheck() as check:
            source = check.column(schema, self.params.column, "params.column", NUMERIC)
            fields = (
                *self.key_of(schema, check),
                SchemaField(
                    name=self.params.column, type=FieldType.NUMBER, unit=source.unit if source else None
                ),
                SchemaField(name="since_last_s", type=FieldType.NUMBER, unit="s"),
                *(field for field in self._also_of(schema, check) if field is not None),
            )
            check.unique(
                [field.name for field in fields], "params.also" if self.params.also else "params.column"
            )
        return StreamSchema(fields=fields, key=self.params.key or schema.key)

    def _also_of(self, schema: StreamSchema, check: SchemaCheck) -> list[SchemaField | None]:
        return [
            check.column(schema, name, f"params.also[{index}]") for index, name in enumerate(self.params.also)
        ]

    def process_key(self, rows: KeyedRows, first: int, end: int, state: dict[str, Any]) -> None:
        values, times_ms, height = rows.floats(self.params.column), rows.times_ms, self.params.height
        before, candidate = state.get("before"), state.get("candidate")
        for place in range(first, end):
            value, now_ms = values[place], times_ms[place]
            if value is None:
                continue
            if before is not None and before[2] and value < before[1] and before[1] >= height:
                at_ms, top, _, *also = before
                if candidate is not None and self._is_over(candidate, at_ms):
                    self._report(rows, place, candidate, state)
                    candidate = None
                if candidate is None or top > candidate[1]:
                    candidate = [at_ms, top, *also]
            if before is None or value != before[1]:
                # If the top is flat, its first value is the peak.
                rose = before is not None and value > before[1]
                # [ms, value, whether it rose to there, the other columns of its row]
                before = [now_ms, value, rose, *self._kept(rows, place)]
            if (
                candidate is not None
                and self._is_over(candidate, now_ms)
                and not self._may_rise(before, candidate)
            ):
                self._report(rows, place, candidate, state)
                candidate = None
        state["before"], state["candidate"] = before, candidate

    def numbers_of(self) -> tuple[str, ...]:
        return (self.params.column, *self.params.also)

    def _kept(self, rows: KeyedRows, place: int) -> list[dict[str, Any]]:
        if not self.params.also:
            return []
        return [{name: to_state(rows.values(name)[place]) for name in self.params.also}]

    def _is_over(self, candidate: list[Any], at_ms: float) -> bool:
        return bool(at_ms - candidate[0] > self.params.distance_s * 1000)

    def _may_rise(self, before: list[Any], candidate: list[Any]) -> bool:
        """Returns whether a top that has not fallen yet may be a higher one near the candidate."""
        at_ms, value, rose = before[:3]
        return rose and value >= self.params.height and not self._is_over(candidate, at_ms)

    def _report(self, rows: KeyedRows, place: int, peak: list[Any], state: dict[str, Any]) -> None:
        at_ms, value, *rest = peak
        last_ms = state.get("last_ms")
        state["last_ms"] = at_ms
        since_s = None if last_ms is None else (at_ms - last_ms) / 1000
        # A column that an upgrade added is not known for a peak that was found before.
        also = [from_state(rest[0].get(name)) if rest else None for name in self.params.also]
        rows.made.append((place, at_ms, value, since_s, *also))


def _lower_before(rows: Sequence[TracedRow], place: int, column: str) -> int:
    """Returns the place of the last row before `place` whose value is another one, or 0."""
    value = rows[place].values[column]
    return next((at for at in range(place - 1, -1, -1) if rows[at].values[column] != value), 0)
