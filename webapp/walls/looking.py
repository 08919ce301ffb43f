"""Looks at a whole wall at once: what its tiles show, and what is new of its curves and its load. One Kafka
consumer reads all of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from time import monotonic
from typing import Annotated, Any

from ninja import Schema
from pydantic import ConfigDict, Field

from pipeline_runtime.kafka.peek import RangeRead, SharedConsumer
from webapp.backends.kafka import asked_of_kafka, kafka_settings
from webapp.monitoring.curves import TIME_MS_MAX, CurveSpan, curve_from, read_for
from webapp.monitoring.schemas import Curve
from webapp.monitoring.selectors import element_history, node_history
from webapp.monitoring.thinning import Drawn
from webapp.pipelines.selectors import pipeline_named
from webapp.placements.selectors import active_deployment
from webapp.problems import Invalid, Missing, Problem
from webapp.walls import schemas
from webapp.walls.kept import kept_curve
from webapp.walls.models import Wall
from webapp.walls.selectors import tiles_of
from webapp.walls.showing import chosen, only, tile_states
from webapp.walls.sources import Sources
from webapp.walls.tiles import TILES_MAX, ChartTile, FigureTile, Id, LoadTile, Series, Tile

CURVES_MAX = 64
"""in one look"""
CURVES_S = 5.0
"""After this time of reading, the curves that are left are for the next look."""


class CurveWanted(CurveSpan):
    """One series of a chart, and which of its rows."""

    model_config = ConfigDict(extra="forbid")

    tile: Id
    series: int = Field(default=0, ge=0, le=7)


class LoadWanted(Schema):
    """A tile of load, and after which time its points are wanted, ms since 1970."""

    model_config = ConfigDict(extra="forbid")

    tile: Id
    after: int = Field(default=0, ge=0, le=TIME_MS_MAX)


class LookWanted(Schema):
    model_config = ConfigDict(extra="forbid")

    curves: Annotated[list[CurveWanted], Field(max_length=CURVES_MAX)] = []
    loads: Annotated[list[LoadWanted], Field(max_length=TILES_MAX)] = []


def look(wall: Wall, wanted: LookWanted) -> schemas.WallLook:
    """Returns what all tiles show, and the wanted curves and loads, in their order. A fault of one of them
    stands only there."""
    tiles = tiles_of(wall)
    by_id = {tile.id: tile for tile in tiles}
    with SharedConsumer(kafka_settings()) as consumer:
        return {
            "at": datetime.now(UTC).isoformat(),
            "revision": wall.revision,
            "tiles": tile_states(tiles, consumer),
            "curves": _curves(by_id, wanted.curves, consumer),
            "loads": [_load(by_id, each) for each in wanted.loads],
        }


RELOAD = "Load the wall again: somebody has changed it."


def _tile(tiles: Mapping[str, Tile], id: str) -> Tile:
    if id not in tiles:
        raise Missing(f'The wall has no tile "{id}".', next=RELOAD)
    return tiles[id]


# -- curves ------------------------------------------------------------------------------------------


def _curves(
    tiles: Mapping[str, Tile], wanted: Sequence[CurveWanted], consumer: SharedConsumer
) -> list[schemas.CurveAnswer]:
    """Returns the curves. Reads a topic only once, even if several series need it."""
    answers: list[schemas.CurveAnswer] = [{"curve": None, "problem": None} for _ in wanted]
    from_topic: dict[tuple[Any, ...], list[tuple[int, Series, str]]] = {}
    asked = [_series(tiles, each) for each in wanted]
    sources = Sources(one.pipeline for one in asked if isinstance(one, Series))
    for index, (span, one) in enumerate(zip(wanted, asked, strict=True)):
        try:
            if isinstance(one, Problem):
                raise one
            source, topic = sources.stream(one)
            answers[index]["curve"] = kept_curve(source, topic, one, span)
            if answers[index]["curve"] is None:
                key = (topic, span.after, span.from_ms, span.to_ms, span.window_ms)
                from_topic.setdefault(key, []).append((index, one, source))
        except Problem as problem:
            answers[index]["problem"] = problem.document()
    deadline = monotonic() + CURVES_S
    for (topic, *_), needed in from_topic.items():
        if monotonic() >= deadline:
            break
        try:
            read = _read(consumer, topic, wanted[needed[0][0]])
        except Problem as problem:
            for index, _, _ in needed:
                answers[index]["problem"] = problem.document()
            continue
        for index, one, source in needed:
            answers[index]["curve"] = _curve(read, source, one, wanted[index])
    return answers


def _read(consumer: SharedConsumer, topic: str, span: CurveSpan) -> RangeRead:
    return asked_of_kafka(lambda _: read_for(consumer, topic, span))


def _curve(read: RangeRead, source: str, one: Series, span: CurveWanted) -> Curve:
    drawn = Drawn((one.column,), one.by)
    found = curve_from(read, source, drawn, span, lambda record: chosen(record, one))
    return {**found, "records": [only(record, one.columns) for record in found["records"]]}


def _series(tiles: Mapping[str, Tile], wanted: CurveWanted) -> Series | Problem:
    try:
        tile = _tile(tiles, wanted.tile)
    except Missing as missing:
        return missing
    if not isinstance(tile, ChartTile | FigureTile):
        return Invalid(f"The tile {tile.id} has no curve: it is a {tile.kind}.", next=RELOAD)
    series = tile.series if isinstance(tile, ChartTile) else [tile.series]
    if wanted.series >= len(series):
        return Invalid(f"The tile {tile.id} has {len(series)} series.", next=RELOAD)
    return series[wanted.series]


# -- load --------------------------------------------------------------------------------------------


def _load(tiles: Mapping[str, Tile], wanted: LoadWanted) -> schemas.LoadAnswer:
    """Returns the points that are newer than is wanted, oldest first."""
    try:
        tile = _tile(tiles, wanted.tile)
        if not isinstance(tile, LoadTile):
            raise Invalid(f"The tile {tile.id} shows no load: it is a {tile.kind}.", next=RELOAD)
        history = _history(tile)
    except Problem as problem:
        return {"points": [], "problem": problem.document()}
    names = ("t", *tile.columns)
    points: list[Any] = [
        {name: point[name] for name in names if name in point}
        for point in history
        if point["t"] > wanted.after
    ]
    return {"points": points, "problem": None}


def _history(tile: LoadTile) -> Sequence[Mapping[str, Any]]:
    if tile.node:
        return node_history(tile.node)
    deployment = active_deployment(pipeline_named(tile.pipeline))
    return element_history(deployment.pk, tile.element) if deployment else []
