"""The tiles of a wall, on a grid. They are checked when they are read. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, model_validator

COLUMNS = 24
"""of the grid"""
TILES_MAX = 60
ANNOTATIONS_MAX = 50
DAY_S = 86_400
RANGE_S_MAX = 31 * DAY_S

Id = Annotated[str, Field(pattern=r"^[a-z0-9-]{1,40}$")]
Name = Annotated[str, Field(min_length=1, max_length=60)]
Column = Annotated[str, Field(min_length=1, max_length=200)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class Stream(_Part):
    """An element's output."""

    pipeline: Name
    element: Name
    output: str = Field(default="", pattern=r"^[\w-]{0,60}$")
    """the port; empty for the only one. An element without an output stands for what it reads"""

    @property
    def stream(self) -> str:
        return f"{self.element}.{self.output}" if self.output else self.element


class Series(Stream):
    """A curve, or a figure."""

    column: Column
    key: str | None = Field(default=None, max_length=1000)
    """only rows with this key"""
    by: Column | None = None
    """a curve for each value of this column"""
    axis: Literal["left", "right"] = "left"
    compare_yesterday: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """Returns the columns that it shows."""
        return (self.column, self.by) if self.by else (self.column,)


class Annotation(_Part):
    at: AwareDatetime
    text: str = Field(min_length=1, max_length=120)
    by: str = Field(default="", max_length=150)
    """who wrote it; the server says so"""


class _Tile(_Part):
    id: Id
    title: str = Field(default="", max_length=80)
    x: int = Field(ge=0, lt=COLUMNS)
    y: int = Field(ge=0, le=200)
    w: int = Field(ge=1, le=COLUMNS)
    h: int = Field(ge=1, le=50)

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.x + self.w > COLUMNS:
            raise ValueError(f"the tile ends at column {self.x + self.w} of {COLUMNS}")
        return self


class LimitOf(_Part):
    """An alarm."""

    pipeline: Name
    element: Name


class _Limits(_Tile):
    """`low` and `high` are limits: outside of them a value is marked."""

    low: float | None = None
    high: float | None = None
    limit_of: LimitOf | None = None
    """the alarm whose limit it is, also when that is changed later"""

    @model_validator(mode="after")
    def _rising(self) -> Self:
        if self.limit_of is not None and (self.low is not None or self.high is not None):
            raise ValueError("limits are those of an alarm, or numbers: give one of the two")
        if self.low is not None and self.high is not None and self.low >= self.high:
            raise ValueError("low must be less than high")
        return self


class ChartTile(_Limits):
    kind: Literal["chart"]
    series: list[Series] = Field(min_length=1, max_length=8)
    range_s: int = Field(default=3600, ge=60, le=RANGE_S_MAX)
    annotations: list[Annotation] = Field(default=[], max_length=ANNOTATIONS_MAX)


class FigureTile(_Limits):
    """The newest value of a column."""

    kind: Literal["figure"]
    series: Series
    unit: str = Field(default="", max_length=20)
    decimals: int | None = Field(default=None, ge=0, le=6)


class TableTile(_Tile, Stream):
    """The newest rows of a stream."""

    kind: Literal["table"]
    columns: list[Column] = Field(min_length=1, max_length=12)
    rows: int = Field(default=10, ge=1, le=50)


class PictureTile(_Tile):
    """A pipeline as it is drawn, with the states of its elements."""

    kind: Literal["picture"]
    pipeline: Name


OF_ELEMENT = {
    "throughput": ("rows_in_per_s", "rows_out_per_s"),
    "lag": ("lag_rows",),
    "latency": ("latency_ms_p50", "latency_ms_p95", "latency_ms_p99"),
}
OF_NODE = {"cpu": ("cpu_ratio",), "memory": ("memory_ratio",)}
LOAD_S_MAX = 3600
"""So long a history of load is kept."""


class LoadTile(_Tile):
    """How busy an element or a node is."""

    kind: Literal["load"]
    figure: Literal["throughput", "lag", "latency", "cpu", "memory"]
    pipeline: str = Field(default="", max_length=60)
    element: str = Field(default="", max_length=60)
    node: str = Field(default="", max_length=60)
    range_s: int = Field(default=900, ge=60, le=LOAD_S_MAX)

    @model_validator(mode="after")
    def _one_subject(self) -> Self:
        of_node = self.figure in OF_NODE
        if bool(self.node) != of_node or any(bool(name) == of_node for name in (self.pipeline, self.element)):
            subject = "a node, and no element" if of_node else "an element of a pipeline, and no node"
            raise ValueError(f"{self.figure} is of {subject}")
        return self

    @property
    def columns(self) -> tuple[str, ...]:
        """Returns what it shows of each point of the history."""
        return OF_NODE.get(self.figure) or OF_ELEMENT[self.figure]


class TextTile(_Tile):
    kind: Literal["text"]
    text: str = Field(max_length=2000)


Tile = Annotated[
    ChartTile | FigureTile | TableTile | PictureTile | LoadTile | TextTile,
    Field(discriminator="kind"),
]


def _each_once(tiles: Sequence[Tile]) -> Sequence[Tile]:
    seen: set[str] = set()
    for tile in tiles:
        if tile.id in seen:
            raise ValueError(f"two tiles have the id {tile.id}")
        seen.add(tile.id)
    return tiles


Tiles = Annotated[list[Tile], Field(max_length=TILES_MAX), AfterValidator(_each_once)]


def streams_of(tile: Tile) -> list[Stream]:
    """Returns the streams that a tile shows: one for each series."""
    if isinstance(tile, ChartTile):
        return [*tile.series]
    if isinstance(tile, FigureTile):
        return [tile.series]
    return [tile] if isinstance(tile, TableTile) else []


def signed(tiles: Sequence[Tile], before: Sequence[Tile], by: str) -> list[Tile]:
    """Returns the tiles with `by` as the writer of each annotation that `before` does not have."""
    known = {
        (tile.id, note.at, note.text, note.by)
        for tile in before
        if isinstance(tile, ChartTile)
        for note in tile.annotations
    }
    return [_signed(tile, known, by) if isinstance(tile, ChartTile) else tile for tile in tiles]


def _signed(tile: ChartTile, known: set[tuple[object, ...]], by: str) -> ChartTile:
    notes = [
        note if (tile.id, note.at, note.text, note.by) in known else note.model_copy(update={"by": by})
        for note in tile.annotations
    ]
    return tile.model_copy(update={"annotations": notes})
