"""State: where a signal is highest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import Field

from pipeline_runtime.model.schema import Field as SchemaField, FieldType, StreamSchema
from pipeline_runtime.operators.by_key import EACH_KEY, ByKey, from_state, moment, number, time_ms, to_state
from pipeline_runtime.operators.columns import NUMERIC, ColumnName, NumericColumn, SchemaCheck
from pipeline_runtime.operators.sdk import Params, Timers


class PeakDetectionParams(Params):
    column: NumericColumn
    height: float = Field(description="only values of at least this height are peaks")
    distance_s: float = Field(
        default=0.0,
        ge=0,
        le=86_400,
        description="if peaks are closer than this in time, only the highest counts",
    )
    also: tuple[ColumnName, ...] = Field(
        default=(),
        max_length=50,
        description="more columns to copy from the peak's row",
    )
    key: ColumnName | None = Field(default=None, title="For each", description=EACH_KEY)


class PeakDetection(ByKey):
    """Emits the peaks of a signal, for each key. A peak is a value of at least `height` that is higher than
    the nearest different values before and after it. If the top is flat, its first value is the peak.

    If peaks are at most `distance_s` apart, only the highest counts, and the first of equal ones. So a peak
    is reported when more than `distance_s` have passed after it. Its event time is that of the peak itself.
    Rows are taken in the order in which they arrive. Null is ignored.

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
    example = {"column": "ecg", "height": 0.5, "distance_s": 0.2}

    params: PeakDetectionParams

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

    def process(
        self, key: str, row: dict[str, Any], state: dict[str, Any], timers: Timers
    ) -> Iterable[dict[str, Any]]:
        if row[self.params.column] is None:
            return
        value, now_ms = float(number(row[self.params.column])), time_ms(row)
        before = state.get("before")  # [ms, value, whether it rose to there, the other columns of its row]
        if before is not None and before[2] and value < before[1] and before[1] >= self.params.height:
            yield from self._peak(row, state, before)
        if before is None or value != before[1]:
            # If the top is flat, its first value is the peak.
            rose = before is not None and value > before[1]
            state["before"] = [now_ms, value, rose, *self._kept(row)]
        candidate = state.get("candidate")
        if (
            candidate is not None
            and self._is_over(candidate, now_ms)
            and not self._may_rise(state, candidate)
        ):
            yield self._output_row(row, state)

    def _kept(self, row: dict[str, Any]) -> list[dict[str, Any]]:
        return [{name: to_state(row[name]) for name in self.params.also}] if self.params.also else []

    def _is_over(self, candidate: list[Any], at_ms: float) -> bool:
        return bool(at_ms - candidate[0] > self.params.distance_s * 1000)

    def _may_rise(self, state: dict[str, Any], candidate: list[Any]) -> bool:
        """Returns whether a top that has not fallen yet may be a higher one near the candidate."""
        at_ms, value, rose = state["before"][:3]
        return rose and value >= self.params.height and not self._is_over(candidate, at_ms)

    def _peak(self, row: dict[str, Any], state: dict[str, Any], peak: list[Any]) -> Iterable[dict[str, Any]]:
        at_ms, value, _, *also = peak
        candidate = state.get("candidate")
        if candidate is not None and self._is_over(candidate, at_ms):
            yield self._output_row(row, state)
            candidate = None
        if candidate is None or value > candidate[1]:
            state["candidate"] = [at_ms, value, *also]

    def _output_row(self, row: dict[str, Any], state: dict[str, Any]) -> dict[str, Any]:
        at_ms, value, *rest = state.pop("candidate")
        last_ms = state.get("last_ms")
        state["last_ms"] = at_ms
        since_s = None if last_ms is None else (at_ms - last_ms) / 1000
        # A column that an upgrade added is not known for a peak that was found before.
        also = {name: from_state(rest[0].get(name)) if rest else None for name in self.params.also}
        said = self.keyed(row, since_last_s=since_s, **{self.params.column: value})
        return {**said, **also, "_time": moment(at_ms)}
