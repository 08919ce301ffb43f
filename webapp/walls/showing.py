"""What the tiles of a wall show: states, newest values, curves, rows and load. Only what the wall says: of
each row the columns of its tile."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from itertools import pairwise
from statistics import median
from typing import Any

from pipeline_runtime.kafka.peek import Newest, PeekedRecord, peek_each
from pipeline_runtime.model.plain_data import exact
from pipeline_runtime.operators.registry import OperatorUnknown, default_registry
from webapp.backends.kafka import asked_of_kafka
from webapp.moments import iso_of_ms
from webapp.monitoring.board import Board
from webapp.monitoring.curves import CurveSpan, curve_of
from webapp.monitoring.schemas import Curve, LiveElement, Peeked, PeekedRecord as PeekedJson
from webapp.monitoring.selectors import element_history, node_history
from webapp.monitoring.streams import (
    fields_of,
    record_json,
    stream_of,
)
from webapp.monitoring.thinning import Drawn
from webapp.pipelines.selectors import pipeline_named
from webapp.pipelines.shape import elements_of
from webapp.placements.selectors import active_deployment
from webapp.problems import BackendAway, Invalid, Problem, TooLarge
from webapp.walls import schemas
from webapp.walls.kept import kept_curve
from webapp.walls.models import Wall
from webapp.walls.selectors import tile_of, tiles_of
from webapp.walls.sources import Sources
from webapp.walls.tiles import (
    ChartTile,
    FigureTile,
    LoadTile,
    PictureTile,
    Series,
    Stream,
    TableTile,
    Tile,
    streams_of,
)

FIGURE_ROWS = 120
"""How many of a stream's newest rows a figure is made of."""
TEXT_MAX = 200
"""characters of a text as a figure, or in a cell of a table"""
READ_S = 5.0
"""So long Kafka may take to give the rows of all tiles."""
READ_BYTES_MAX = 8 * 1024 * 1024
"""of the rows of all streams, which share them alike"""


class _Shown:
    """The pipelines of a wall, read once for all its tiles."""

    def __init__(self, tiles: Sequence[Tile]) -> None:
        names = {stream.pipeline for tile in tiles for stream in streams_of(tile)}
        names |= {tile.pipeline for tile in tiles if isinstance(tile, PictureTile | LoadTile)}
        self._sources = Sources(names)
        self.pipelines = self._sources.pipelines
        self.board = Board(self.pipelines.values())
        self._tiles = tiles
        self._newest: dict[str, Newest] | BackendAway | None = None

    def stream(self, wanted: Stream) -> tuple[str, str]:
        """Returns the stream (`element.port`) and its topic. Raises Missing and Conflict."""
        return self._sources.stream(wanted)

    def element(self, pipeline: str, id: str) -> LiveElement | None:
        row = self.pipelines.get(pipeline)
        found = self.board.elements(row) if row is not None else ()
        return next((element for element in found if element["id"] == id), None)

    def newest(self, wanted: Stream, rows: int) -> list[PeekedRecord]:
        """Returns the newest records of a stream, oldest first. Those of all tiles are read at once, by one
        consumer. Raises BackendAway, also if this stream's came too late."""
        if self._newest is None:
            self._newest = self._read()
        if isinstance(self._newest, BackendAway):
            raise self._newest
        found = self._newest[self.stream(wanted)[1]]
        if found.late:
            raise BackendAway(f"Kafka did not give the newest rows within {READ_S:.0f} s.")
        if found.cut and not found.records:
            raise TooLarge("The newest row is too large for a wall.")
        return found.records[-rows:]

    def _read(self) -> dict[str, Newest] | BackendAway:
        limits: dict[str, int] = {}
        for tile in self._tiles:
            for stream, rows in _wanted_rows(tile):
                with suppress(Problem):
                    topic = self.stream(stream)[1]
                    limits[topic] = max(rows, limits.get(topic, 0))
        each = READ_BYTES_MAX // max(1, len(limits))
        try:
            return asked_of_kafka(lambda kafka: peek_each(kafka, limits, READ_S, each))
        except BackendAway as away:
            return away


def _wanted_rows(tile: Tile) -> list[tuple[Stream, int]]:
    """Returns which streams' newest rows a tile shows, and how many."""
    if isinstance(tile, FigureTile):
        return [(tile.series, FIGURE_ROWS)]
    return [(tile, tile.rows)] if isinstance(tile, TableTile) else []


def state_of(wall: Wall) -> schemas.WallState:
    """Returns what all tiles show beside curves and load. What is wrong with one tile stands there alone."""
    tiles = tiles_of(wall)
    shown = _Shown(tiles)
    return {
        "at": datetime.now(UTC).isoformat(),
        "revision": wall.revision,
        "tiles": {tile.id: _tile_state(tile, shown) for tile in tiles},
    }


def _tile_state(tile: Tile, shown: _Shown) -> schemas.TileState:
    found: schemas.TileState = {
        "sources": [_source(stream, shown) for stream in streams_of(tile)],
        "figure": None,
        "rows": None,
        "picture": None,
    }
    if isinstance(tile, FigureTile | TableTile) and found["sources"][0]["problem"] is None:
        try:
            if isinstance(tile, FigureTile):
                found["figure"] = _figure(tile.series, shown)
            else:
                found["rows"] = _table(tile, shown)
        except Problem as problem:
            found["sources"][0]["problem"] = problem.detail
    if isinstance(tile, PictureTile):
        found["picture"] = _picture(tile.pipeline, shown)
    if isinstance(tile, LoadTile) and not tile.node:
        found["sources"] = [_loaded(tile, shown)]
    return found


def _source(stream: Stream, shown: _Shown) -> schemas.SourceState:
    element, problem = None, None
    try:
        # A view stands for what it reads.
        source, _ = shown.stream(stream)
        element = shown.element(stream.pipeline, source.partition(".")[0])
    except Problem as found:
        problem = found.detail
    return _stands(stream, element, problem)


def _loaded(tile: LoadTile, shown: _Shown) -> schemas.SourceState:
    element = shown.element(tile.pipeline, tile.element)
    problem = None if element else f'There is no element "{tile.element}" in "{tile.pipeline}".'
    return _stands(tile, element, problem)


def _stands(
    asked: Stream | LoadTile, element: LiveElement | None, problem: str | None
) -> schemas.SourceState:
    return {
        "pipeline": asked.pipeline,
        "element": asked.element,
        "title": element["title"] if element else asked.element,
        "status": element["status"] if element else None,
        "last_row_at": element["last_row_at"] if element else None,
        "problem": problem,
    }


def _figure(series: Series, shown: _Shown) -> schemas.FigureState:
    found = [
        (record.timestamp_ms, value[series.column])
        for record in shown.newest(series, FIGURE_ROWS)
        if (value := chosen(record, series)) is not None
    ]
    times = sorted({at for at, _ in found})
    gaps = [after - before for before, after in pairwise(times)]
    at, value = found[-1] if found else (None, None)
    return {
        "at": iso_of_ms(at),
        "value": _cell(value),
        "every_s": round(median(gaps) / 1000, 3) if gaps else None,
        "points": [(at, number) for at, number in found if _is_number(number)],
    }


def _table(tile: TableTile, shown: _Shown) -> Peeked:
    """A row has only the columns of the tile, and no key."""
    records = [_only(record_json(each), tile.columns) for each in shown.newest(tile, tile.rows)]
    for record in records:
        record["value"] = {name: _short(value) for name, value in record["value"].items()}
    return {"stream": shown.stream(tile)[0], "records": records}


def _short(value: Any) -> Any:
    """Returns what a cell shows of a value: a long text or a large object only begins there."""
    if isinstance(value, list | dict):
        text = json.dumps(value, ensure_ascii=False)
        return value if len(text) <= TEXT_MAX else _short(text)
    return f"{value[:TEXT_MAX]}…" if isinstance(value, str) and len(value) > TEXT_MAX else value


def _cell(value: Any) -> Any:
    if isinstance(value, str):
        return value[:TEXT_MAX]
    return exact(value) if isinstance(value, int | float) else None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_STEP = 300
"""from one element without a place to the next; a box is 240 wide"""


def _picture(name: str, shown: _Shown) -> schemas.PictureState | None:
    """Returns None if there is no such pipeline. Parameters are not part of it: they may hold secrets."""
    pipeline = shown.pipelines.get(name)
    if pipeline is None:
        return None
    deployment = shown.board.deployment(pipeline)
    document = deployment.version.document if deployment else pipeline.draft
    live = {element["id"]: element for element in shown.board.elements(pipeline)}
    return {
        "title": pipeline.title,
        "status": shown.board.item(pipeline)["status"],
        "elements": [
            _drawn(element, live[element["id"]], index) for index, element in enumerate(elements_of(document))
        ],
    }


def _drawn(element: Mapping[str, Any], live: LiveElement, index: int) -> schemas.PictureElement:
    """An element without a place stands in a row with the others, as in other pictures of pipelines."""
    ui = element.get("ui")
    place = ui if isinstance(ui, Mapping) else {}
    return {
        "id": live["id"],
        "title": live["title"],
        "category": _category(element.get("type")),
        "x": place["x"] if _is_number(place.get("x")) else index * _STEP,
        "y": place["y"] if _is_number(place.get("y")) else 0,
        "inputs": list(_inputs(element)),
        "status": live["status"],
    }


def _category(type_: Any) -> str:
    try:
        return str(default_registry().get(type_).category)
    except (OperatorUnknown, TypeError):
        return ""


def _inputs(element: Mapping[str, Any]) -> Iterable[str]:
    """A draft may have anything there."""
    inputs = element.get("inputs")
    for source in inputs.values() if isinstance(inputs, Mapping) else ():
        yield from (
            each for each in (source if isinstance(source, list) else [source]) if isinstance(each, str)
        )


# -- curves and load ---------------------------------------------------------------------------------


def curve_of_tile(wall: Wall, tile_id: str, index: int, span: CurveSpan) -> Curve:
    """Returns the rows that a chart or a figure needs for one of its series. Raises Missing, Invalid,
    Conflict and BackendAway."""
    tile = tile_of(wall, tile_id)
    if not isinstance(tile, ChartTile | FigureTile):
        raise Invalid(f"The tile {tile_id} has no curve: it is a {tile.kind}.", faults=[_fault("tile")])
    series = tile.series if isinstance(tile, ChartTile) else [tile.series]
    if index >= len(series):
        raise Invalid(f"The tile {tile_id} has {len(series)} series.", faults=[_fault("series")])
    one = series[index]
    _, source, topic = stream_of(one.pipeline, one.stream)
    kept = kept_curve(source, topic, one, span)
    if kept is not None:
        return kept
    found = curve_of(source, topic, Drawn((one.column,), one.by), span, lambda record: chosen(record, one))
    return {**found, "records": [_only(record, one.columns) for record in found["records"]]}


def load_of_tile(wall: Wall, tile_id: str, after_ms: int) -> schemas.LoadHistory:
    """Returns the points of a tile of load that are newer than `after_ms`, oldest first. Raises Missing,
    Invalid and BackendAway."""
    tile = tile_of(wall, tile_id)
    if not isinstance(tile, LoadTile):
        raise Invalid(f"The tile {tile_id} shows no load: it is a {tile.kind}.", faults=[_fault("tile")])
    names = ("t", *tile.columns)
    points: list[Any] = [
        {name: point[name] for name in names if name in point}
        for point in _load_history(tile)
        if point["t"] > after_ms
    ]
    return {"points": points}


def _load_history(tile: LoadTile) -> Sequence[Mapping[str, Any]]:
    if tile.node:
        return node_history(tile.node)
    deployment = active_deployment(pipeline_named(tile.pipeline))
    return element_history(deployment.pk, tile.element) if deployment else []


def chosen(record: PeekedRecord, series: Series) -> dict[str, Any] | None:
    """Returns the columns of a record that a series shows, or None if it shows nothing of it."""
    if series.key is not None and record.key != series.key:
        return None
    value = fields_of(record)
    if value.get(series.column) is None:
        return None
    return {name: value[name] for name in series.columns if name in value}


def _only(record: PeekedJson, columns: Iterable[str]) -> PeekedJson:
    value = record["value"]
    kept = {name: value[name] for name in columns if name in value} if isinstance(value, dict) else {}
    return {**record, "key": None, "value": kept}


def _fault(path: str) -> Any:
    return {"element": None, "path": path, "message": "is not one of the wall's", "code": "invalid"}
