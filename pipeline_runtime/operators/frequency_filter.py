"""State: a signal without its too slow or too fast parts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from enum import StrEnum
from math import isfinite, isnan
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from pipeline_runtime.model.schema import Field as SchemaField, FieldType, StreamSchema
from pipeline_runtime.operators.by_key import EACH_KEY
from pipeline_runtime.operators.columns import NUMERIC, ColumnName, NewColumn, NumericColumn, SchemaCheck
from pipeline_runtime.operators.key_columns import KeyArrays
from pipeline_runtime.operators.key_states import Column, KeyStates
from pipeline_runtime.operators.keyed_rows import KeyedRows, Places, Rounds
from pipeline_runtime.operators.lineage import Came, TracedRow, everything, is_same, named, up_to
from pipeline_runtime.operators.sdk import FileDescriber, Params

_BUTTERWORTH = math.sqrt(0.5)
"""The quality at which a second-order filter is flat up to its cutoff."""
N = TypeVar("N", float, NDArray[np.float64])

LEAST = 1e-6
"""A share of the sample rate. Below it, the coefficients have too few digits."""


class Kind(StrEnum):
    LOW = "low-pass"
    HIGH = "high-pass"
    BAND = "band-pass"


class FrequencyFilterParams(Params):
    column: NumericColumn = Field(description="the column of numbers that is the signal")
    kind: Kind = Field(default=Kind.LOW, title="What is left", description="which part of the signal is left")
    sample_rate_hz: float = Field(
        gt=0,
        le=1e6,
        title="Rows per second of each key",
        description="how many rows each key has per second, at even intervals",
    )
    low_cutoff_hz: float | None = Field(
        default=None,
        gt=0,
        title="Remove below, in Hz",
        description="for a high-pass or band-pass, which need it: lower frequencies are removed. At least a"
        " millionth of the sample rate, and less than half of it",
    )
    high_cutoff_hz: float | None = Field(
        default=None,
        gt=0,
        title="Remove above, in Hz",
        description="for a low-pass or band-pass, which need it: higher frequencies are removed. At least a"
        " millionth of the sample rate, and less than half of it; for a band-pass, more than the low cutoff",
    )
    name: NewColumn = Field(
        default="filtered", title="Name of the new column", description="the name of the new column"
    )
    key: ColumnName | None = Field(default=None, title="For each", description=EACH_KEY)

    @model_validator(mode="after")
    def _cutoffs(self) -> FrequencyFilterParams:
        needed = {
            "low_cutoff_hz": self.kind is not Kind.LOW,
            "high_cutoff_hz": self.kind is not Kind.HIGH,
        }
        for name in (name for name, is_needed in needed.items() if is_needed):
            cutoff = getattr(self, name)
            if cutoff is None:
                raise ValueError(f"{name} is needed for a {self.kind.value} filter")
            if cutoff >= self.sample_rate_hz / 2:
                raise ValueError(f"{name} must be less than half of sample_rate_hz")
            if cutoff < self.sample_rate_hz * LEAST:
                raise ValueError(f"{name} must be at least a millionth of sample_rate_hz")
        if all(needed.values()) and not (self.low_cutoff_hz or 0) < (self.high_cutoff_hz or 0):
            raise ValueError("low_cutoff_hz must be less than high_cutoff_hz")
        return self


class Section(NamedTuple):
    """A second-order section: y = b0 x + b1 x' + b2 x'' - a1 y' - a2 y''."""

    b0: float
    b1: float
    b2: float
    a1: float
    a2: float


class FrequencyFilter(KeyArrays):
    """Adds a column with the slow part of a signal (low-pass), its fast part (high-pass), or the part between
    two cutoff frequencies (band-pass), for each key.

    The filters are Butterworth filters of second order (12 dB per octave; 71 % of the signal is left at a
    cutoff). A band-pass is a high-pass and a low-pass. They are made by the bilinear transform: R.
    Bristow-Johnson, *Cookbook formulae for audio equalizer biquad filter coefficients*. A filter starts as if
    the first value had always been there, so that there is no jump at the start. Like all such filters, they
    delay the signal.

    The element takes rows in the order in which they arrive, as if they were `1 / sample_rate_hz` apart,
    whatever their event time is. So the filter suits signals with an even pace. A row without a value gets
    null and does not count. A row whose value is too large for the filter goes to the dead letters.
    """

    type = "frequency-filter"
    title = "Frequency filter"
    summary = "Filters a signal by frequency: low-pass, high-pass or band-pass"
    category = "state"
    icon = "audio-waveform"
    Params = FrequencyFilterParams
    state_params = frozenset({"column", "kind", "sample_rate_hz", "low_cutoff_hz", "high_cutoff_hz", "key"})
    other_columns = "more"
    keeps = "the filter's memory: it starts as with a first row"
    example = {"column": "value", "kind": "low-pass", "sample_rate_hz": 100, "high_cutoff_hz": 5}

    params: FrequencyFilterParams

    def __init__(self, params: Any, describe_file: FileDescriber | None = None) -> None:
        super().__init__(params, describe_file)
        self._sections = sections(params)

    def came_from(self, made: TracedRow, inputs: Mapping[str, StreamSchema]) -> Mapping[str, Came]:
        is_trigger = is_same(made, named(inputs["in"].names))
        return {"in": Came(None, made.time_ms, up_to(self.is_of_key(made), is_trigger, everything))}

    def output_schema(self, inputs: Mapping[str, StreamSchema]) -> StreamSchema:
        schema = inputs["in"]
        with SchemaCheck() as check:
            source = check.column(schema, self.params.column, "params.column", NUMERIC)
            self.key_of(schema, check)
            unit = source.unit if source is not None else None
            fields = (*schema.fields, SchemaField(name=self.params.name, type=FieldType.NUMBER, unit=unit))
            check.unique([field.name for field in fields], "params.name")
        return StreamSchema(fields=fields, key=self.params.key or schema.key)

    def state_columns(self, schema: StreamSchema) -> Mapping[str, Column]:
        """Each section remembers two numbers. A new key has NaN."""
        return dict.fromkeys((f"memory_{number}" for number in range(2 * len(self._sections))), Column.NUMBER)

    def process_rows(self, rows: KeyedRows, states: KeyStates) -> None:
        names = self.state_columns(rows.schema)
        rounds, values = Rounds(rows), rows.array(self.params.column)
        memories = [rounds.sorted(states[name]) for name in names]
        made = np.full(len(values), np.nan)
        for places in rounds:
            some = [memory[: len(places)] for memory in memories]
            made[places] = self._take(rows, some, places, values[places])
        for key, first, end in rounds.rest():
            made[first:end] = self._take_all(rows, memories, key, first, end)
        for name, memory in zip(names, memories, strict=True):
            states[name] = rounds.as_before(memory)
        places = rows.accepted()
        rows.give(places, rows.times[places], made[places])

    def _take(
        self,
        rows: KeyedRows,
        memories: Sequence[NDArray[np.float64]],
        places: Places,
        values: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        """Takes a row of each of some keys. Returns what the filter makes of them."""
        given, now, found = ~np.isnan(values), [], values
        fits = np.isfinite(values)
        is_new = np.isnan(memories[0])
        with np.errstate(all="ignore"):
            for section, first, second in zip(self._sections, memories[::2], memories[1::2], strict=True):
                if is_new.any():
                    settled = _settled(section, found)
                    first, second = np.where(is_new, settled[0], first), np.where(is_new, settled[1], second)
                found, first, second = _next(section, found, first, second)
                now += [first, second]
        for each in (found, *now):
            fits &= np.isfinite(each)
        for place in places[given & ~fits].tolist():
            rows.reject(place, _too_large())
        for remembered, new in zip(memories, now, strict=True):
            np.copyto(remembered, new, where=fits)
        return np.where(fits, found, np.nan)

    def _take_all(
        self, rows: KeyedRows, memories: Sequence[NDArray[np.float64]], key: int, first: int, end: int
    ) -> list[float | None]:
        """Takes rows of one key, which give the same one by one."""
        values, made = rows.floats(self.params.column), []
        kept: list[float] = [memory[key].item() for memory in memories]
        for place in range(first, end):
            value = values[place]
            if value is not None:
                is_new, now = isnan(kept[0]), []
                for number, section in enumerate(self._sections):
                    before = _settled(section, value) if is_new else kept[2 * number : 2 * number + 2]
                    value, *memory = _next(section, value, *before)
                    now += memory
                if not (isfinite(value) and all(map(isfinite, now))):
                    rows.reject(place, _too_large())
                    value = None
                else:
                    kept = now
            made.append(value)
        for remembered, last in zip(memories, kept, strict=True):
            remembered[key] = last
        return made


def _too_large() -> ValueError:
    return ValueError("the value is too large for the filter")


def _next(section: Section, value: N, first: N, second: N) -> tuple[N, N, N]:
    """Transposed direct form II. Returns the output and the two numbers that the section remembers."""
    b0, b1, b2, a1, a2 = section
    out = b0 * value + first
    return out, b1 * value - a1 * out + second, b2 * value - a2 * out


def sections(params: FrequencyFilterParams) -> tuple[Section, ...]:
    found = []
    if params.kind is not Kind.LOW:
        found.append(_section(Kind.HIGH, params.low_cutoff_hz or 0.0, params.sample_rate_hz))
    if params.kind is not Kind.HIGH:
        found.append(_section(Kind.LOW, params.high_cutoff_hz or 0.0, params.sample_rate_hz))
    return tuple(found)


def _section(kind: Kind, cutoff_hz: float, sample_rate_hz: float) -> Section:
    angle = 2 * math.pi * cutoff_hz / sample_rate_hz
    cos, alpha = math.cos(angle), math.sin(angle) / (2 * _BUTTERWORTH)
    less = 2 * math.sin(angle / 2) ** 2  # 1 - cos, with all its digits
    ends, middle = (less / 2, less) if kind is Kind.LOW else ((1 + cos) / 2, -(1 + cos))
    a0 = 1 + alpha
    return Section(ends / a0, middle / a0, ends / a0, -2 * cos / a0, (1 - alpha) / a0)


def _settled(section: Section, value: N) -> tuple[N, N]:
    """Returns what the section remembers, as if the value had always been there."""
    gain = (section.b0 + section.b1 + section.b2) / (1 + section.a1 + section.a2)
    out = gain * value
    second = section.b2 * value - section.a2 * out
    return section.b1 * value - section.a1 * out + second, second
