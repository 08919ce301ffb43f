"""Source: generated rows, for trying things out and for measurements."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, model_validator

from pipeline_runtime.model.schema import Field as SchemaField, FieldType, StreamSchema
from pipeline_runtime.operators import source_clock
from pipeline_runtime.operators.columns import UNIT, NewColumn, SchemaCheck
from pipeline_runtime.operators.sdk import (
    OperatorContext,
    Params,
    Position,
    SourceOperator,
    SourceReader,
)

READ_ROWS_MAX = 100_000
ROWS_MAX = 10**15
"""At a million rows a second, these take 30 years."""
_WALK_OCTAVES = 8


class Shape(StrEnum):
    SINE = "sine"  # one wave per period
    WALK = "walk"  # wanders smoothly between low and high
    UNIFORM = "uniform"  # any value between low and high, independent in each row
    COUNTER = "counter"  # 0, 1, 2, ... per key; an integer


class Signal(BaseModel):
    """One column of numbers."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    name: NewColumn = Field(description="the name of the new column")
    shape: Shape = Field(
        default=Shape.SINE,
        description="a sine; a smooth random walk; random numbers; or 0, 1, 2, ... for each key",
    )
    low: float = Field(
        default=0.0, title="Least value", description="the least value; of no effect on a counter"
    )
    high: float = Field(
        default=1.0, title="Greatest value", description="the greatest value; of no effect on a counter"
    )
    period_s: float = Field(
        default=60.0,
        ge=0.001,
        le=1e9,
        title="Period, in seconds",
        description="the period of a sine, or of the slowest change of a walk",
    )
    unit: str | None = Field(default=None, max_length=40, description=UNIT)

    @model_validator(mode="after")
    def _in_order(self) -> Signal:
        if self.high < self.low:
            raise ValueError("high is below low; exchange them")
        return self


class GeneratorParams(Params):
    rate: float = Field(
        default=10.0, gt=0, le=1e6, title="Rows per second", description="rows per second, all keys together"
    )
    rows: int = Field(
        default=0,
        ge=0,
        le=ROWS_MAX,
        title="Rows before it ends",
        description="how many rows it makes before it ends; 0: it never ends",
    )
    keys: int = Field(
        default=1,
        ge=1,
        le=1_000_000,
        title="Different keys",
        description="how many keys take turns, such as sensors",
    )
    key_prefix: str = Field(
        default="sensor-",
        max_length=40,
        title="Keys begin with",
        description="what each key begins with, before its number",
    )
    seed: int = Field(default=1, ge=0, lt=2**32, description="another seed gives other values")
    signals: tuple[Signal, ...] = Field(
        default=(Signal(name="value"),), max_length=100, description="the columns of numbers"
    )
    catch_up: source_clock.CatchUp = True


class Generator(SourceOperator):
    """Makes rows with the columns `key`, `n` and one for each signal, evenly at `rate` rows per second.

    Keys take turns: `sensor-0`, `sensor-1`, ... `n` is the row's number, from 0. Signals are sines, smooth
    random walks, uniform noise or counters. Each value follows from the parameters and the row's number. So
    two runs with the same parameters give the same values, and the element can be moved and restored at any
    row.

    Event time is the time at which a row is due by the rate. A pause stops the clock. After another stop,
    such as that of its node, the element at once sends the rows that were due in the meantime. With
    `catch_up: false` it does so only if they are at most 2 s late, and otherwise goes on as after a pause. It
    leaves out no row.
    """

    type = "generator"
    title = "Generator"
    summary = "Makes test data: sines, random walks, noise, counters"
    category = "sources"
    icon = "activity"
    Params = GeneratorParams
    state_params = frozenset()
    example = {"rate": 100, "keys": 3, "signals": [{"name": "temperature", "shape": "walk", "high": 80}]}

    params: GeneratorParams

    def output_schema(self, inputs: Mapping[str, StreamSchema]) -> StreamSchema:
        fields = [
            SchemaField(name="key", type=FieldType.STRING),
            SchemaField(name="n", type=FieldType.INTEGER),
        ]
        for signal in self.params.signals:
            type_ = FieldType.INTEGER if signal.shape is Shape.COUNTER else FieldType.NUMBER
            fields.append(SchemaField(name=signal.name, type=type_, unit=signal.unit))
        with SchemaCheck() as check:
            check.unique([field.name for field in fields], "params.signals")
        return StreamSchema(fields=tuple(fields), key="key")

    def open(self, ctx: OperatorContext) -> SourceReader:
        return GeneratorReader(self.params)


class GeneratorReader(SourceReader):
    def __init__(self, params: GeneratorParams) -> None:
        self.params = params

    def initial(self, now_ms: int) -> Position:
        return source_clock.initial_position(now_ms)

    def advance(self, start: Position, now_ms: int, rows_max: int) -> Position:
        row, rate = int(start["row"]), self.params.rate
        paced = self._paced(start)
        if not self.params.catch_up:
            due_ms = source_clock.clock_start_ms(paced) + self._due_ms(row)
            paced = source_clock.without_backlog(paced, now_ms, due_ms)
        end = min(source_clock.rows_due(paced, now_ms, rate), row + rows_max)
        if self.params.rows:
            end = min(end, self.params.rows)
        return source_clock.at_row(paced, end, self._due_ms(end)) if end > row else start

    def _due_ms(self, row: int) -> float:
        """When a row is due, from the clock's start."""
        return row / self.params.rate * 1000

    def _paced(self, position: Position) -> Position:
        return source_clock.repaced(position, self._due_ms(int(position["row"])), moves_times=True)

    def read(self, start: Position, end: Position) -> Iterator[pa.RecordBatch]:
        first, last = source_clock.row_range(start, end)
        for begin in range(first, last, READ_ROWS_MAX):
            yield self._batch(np.arange(begin, min(begin + READ_ROWS_MAX, last), dtype=np.int64), end)

    def _batch(self, rows: NDArray[np.int64], end: Position) -> pa.RecordBatch:
        keys, turns = rows % self.params.keys, rows // self.params.keys
        names = np.char.add(self.params.key_prefix, keys.astype(str))
        columns: dict[str, pa.Array] = {"key": pa.array(names.tolist(), pa.string()), "n": pa.array(rows)}
        for index, signal in enumerate(self.params.signals):
            columns[signal.name] = pa.array(self._signal(signal, index, rows, keys, turns))
        times = source_clock.start_us(end, rows) + (rows * 1e6 / self.params.rate).astype(np.int64)
        columns["_time"] = pa.array(times, pa.timestamp("us", "UTC"))
        columns["_offset"] = pa.array(rows)
        return pa.record_batch(columns)

    def _signal(
        self,
        signal: Signal,
        index: int,
        rows: NDArray[np.int64],
        keys: NDArray[np.int64],
        turns: NDArray[np.int64],
    ) -> NDArray[np.int64] | NDArray[np.float64]:
        if signal.shape is Shape.COUNTER:
            return turns
        seed = self.params.seed * 1_000_003 + index * 7919
        phase_s = rows / self.params.rate
        if signal.shape is Shape.SINE:
            # Each key has its own phase, so that their curves can be told apart.
            angle = 2 * np.pi * (phase_s / signal.period_s + unit_noise(keys, seed))
            share = (np.sin(angle) + 1) / 2
        elif signal.shape is Shape.UNIFORM:
            share = unit_noise(rows, seed)
        else:
            share = smooth_walk(phase_s / signal.period_s, keys, seed)
        return np.asarray(signal.low + share * (signal.high - signal.low), dtype=np.float64)

    def rows_between(self, start: Position, end: Position) -> int:
        first, last = source_clock.row_range(start, end)
        return last - first

    def ended(self, position: Position) -> bool:
        return bool(self.params.rows) and int(position["row"]) >= self.params.rows

    def due_ms(self, start: Position, end: Position) -> float | None:
        if self.ended(start):
            return None
        return source_clock.clock_start_ms(self._paced(end)) + self._due_ms(int(start["row"]))

    def pause_shift(self, position: Position, paused_ms: int) -> Position:
        return source_clock.shifted(position, paused_ms)


def unit_noise(numbers: NDArray[np.int64], seed: int) -> NDArray[np.float64]:
    """Returns numbers in [0, 1) that follow from (number, seed) alone: splitmix64."""
    with np.errstate(over="ignore"):
        x = numbers.astype(np.uint64) + np.uint64(seed % 2**32) * np.uint64(0x9E3779B97F4A7C15)
        x += np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        x ^= x >> np.uint64(31)
    return (x >> np.uint64(11)).astype(np.float64) / float(2**53)


def smooth_walk(phase: NDArray[np.float64], keys: NDArray[np.int64], seed: int) -> NDArray[np.float64]:
    """Returns a walk in [0, 1) that needs no memory: noise of several wavelengths, each half as long and half
    as strong as the one before."""
    total = np.zeros(len(phase))
    for octave in range(_WALK_OCTAVES):
        scaled = phase * 2**octave
        whole = np.floor(scaled).astype(np.int64)
        part = scaled - whole
        ease = part * part * (3 - 2 * part)
        lattice = keys * 1_000_000_007 + octave * 131_071
        before = unit_noise(whole + lattice, seed)
        after = unit_noise(whole + 1 + lattice, seed)
        total += (before + (after - before) * ease) / 2 ** (octave + 1)
    return np.asarray(total / (1 - 0.5**_WALK_OCTAVES))
