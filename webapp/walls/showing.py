"""Reads what the tiles of a wall show beside curves and load: states, newest values and rows. Reads only what
the wall names: of each row, the columns of its tile."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from statistics import median
from typing import Any

from pipeline_runtime.kafka.peek import Newest, PeekedRecord, SharedConsumer, peek_each
from pipeline_runtime.model.plain_data import exact
from pipeline_runtime.operators.registry import OperatorUnknown, default_registry
from webapp.alarms.state import SEVERITIES, Severity
from webapp.backends.kafka import asked_of_kafka
from webapp.moments import iso_of_ms
from webapp.monitoring.board import Board
from webapp.monitoring.schemas import LiveElement, Peeked, PeekedRecord as PeekedJson
from webapp.monitoring.streams import (
    fields_of,
    record_json,
)
from webapp.pipelines.shape import elements_of
from webapp.problems import BackendAway, Problem, TooLarge
from webapp.walls import schemas
from webapp.walls.limits import limits_of
from webapp.walls.sources import Sources
from webapp.walls.tiles import (
    ChartTile,
    FigureTile,
    LimitOf,
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

    def __init__(self, tiles: Sequence[Tile], consumer: SharedConsumer) -> None:
        names = {stream.pipeline for tile in tiles for stream in streams_of(tile)}
        names |= {tile.pipeline for tile in tiles if isinstance(tile, PictureTile | LoadTile)}
        names |= {limit.pipeline for tile in tiles if (limit := _limit_of(tile)) is not None}
        self._sources = Sources(names)
        self.pipelines = self._sources.pipelines
        self.board = Board(self.pipelines.values())
        self._tiles = tiles
        self._consumer = consumer
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
            raise BackendAway(
                f"Kafka did not give the newest rows within {READ_S:.0f} s.",
                safe="Running pipelines are not affected.",
                next="The wall asks again by itself. If this stays, check how busy Kafka is.",
            )
        if found.cut and not found.records:
            raise TooLarge(
                "The newest row is too large for a wall.", next="Select fewer columns before this stream."
            )
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
            return asked_of_kafka(lambda _: peek_each(self._consumer, limits, READ_S, each))
        except BackendAway as away:
            return away


def _limit_of(tile: Tile) -> LimitOf | None:
    return tile.limit_of if isinstance(tile, ChartTile | FigureTile) else None


def _limits(tile: Tile, shown: _Shown) -> schemas.Limits | None:
    """Returns the limit of the alarm that the tile names, as it runs."""
    named = _limit_of(tile)
    pipeline = shown.pipelines.get(named.pipeline) if named is not None else None
    deployment = shown.board.deployment(pipeline) if pipeline is not None else None
    if named is None or deployment is None:
        return None
    return limits_of(elements_of(deployment.version.document), named.element)


def _wanted_rows(tile: Tile) -> list[tuple[Stream, int]]:
    """Returns which streams' newest rows a tile shows, and how many."""
    if isinstance(tile, FigureTile):
        return [(tile.series, FIGURE_ROWS)]
    return [(tile, tile.rows)] if isinstance(tile, TableTile) else []


def tile_states(tiles: Sequence[Tile], consumer: SharedConsumer) -> dict[str, schemas.TileState]:
    """Returns what tiles show beside curves and load. A fault of one tile stands only there."""
    shown = _Shown(tiles, consumer)
    return {tile.id: _tile_state(tile, shown) for tile in tiles}


def _tile_state(tile: Tile, shown: _Shown) -> schemas.TileState:
    found: schemas.TileState = {
        "sources": [_source(stream, shown) for stream in streams_of(tile)],
        "alarm": None,
        "figure": None,
        "rows": None,
        "picture": None,
        "limits": _limits(tile, shown),
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
    found["alarm"] = _alarm(tile, found["sources"], shown)
    return found


def _alarm(tile: Tile, sources: Sequence[schemas.SourceState], shown: _Shown) -> Severity | None:
    """Returns the worst alarm of what the tile shows, and of the alarm whose limit it shows."""
    named = {(source["pipeline"], source["element"]) for source in sources}
    if isinstance(tile, PictureTile) and (row := shown.pipelines.get(tile.pipeline)) is not None:
        named |= {(row.name, element["id"]) for element in shown.board.elements(row)}
    if (limit := _limit_of(tile)) is not None:
        named.add((limit.pipeline, limit.element))
    elements = (shown.element(pipeline, id) for pipeline, id in named)
    found = [element["alarm"] for element in elements if element is not None and element["alarm"]]
    return max(found, key=SEVERITIES.index, default=None)


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
    """Returns a table tile. Its rows have only the columns of the tile, and no key."""
    records = [only(record_json(each), tile.columns) for each in shown.newest(tile, tile.rows)]
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
    """Returns the picture of a pipeline, or None if there is no such pipeline. Leaves out parameters, because
    they may hold secrets."""
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
    """Returns an element of the picture. An element without a place stands in a row with the others, as in
    other pictures of pipelines."""
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
    """Yields the inputs of an element. A draft may have anything there."""
    inputs = element.get("inputs")
    for source in inputs.values() if isinstance(inputs, Mapping) else ():
        yield from (
            each for each in (source if isinstance(source, list) else [source]) if isinstance(each, str)
        )


def chosen(record: PeekedRecord, series: Series) -> dict[str, Any] | None:
    """Returns the columns of a record that a series shows, or None if it shows nothing of it."""
    if series.key is not None and record.key != series.key:
        return None
    value = fields_of(record)
    if value.get(series.column) is None:
        return None
    return {name: value[name] for name in series.columns if name in value}


def only(record: PeekedJson, columns: Iterable[str]) -> PeekedJson:
    value = record["value"]
    kept = {name: value[name] for name in columns if name in value} if isinstance(value, dict) else {}
    return {**record, "key": None, "value": kept}
