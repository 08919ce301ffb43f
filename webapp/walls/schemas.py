"""Responses about walls."""

from __future__ import annotations

from typing import Any

from typing_extensions import TypedDict

from webapp.alarms.state import Severity
from webapp.json_types import Number
from webapp.monitoring.schemas import Curve, ElementPoint, Peeked
from webapp.nodes.schemas import NodePoint
from webapp.walls.tiles import Tile


class WallItem(TypedDict):
    id: str
    title: str
    tiles: int
    changed_at: str
    changed_by: str | None


class Wall(TypedDict):
    id: str
    title: str
    revision: int
    tiles: list[Tile]
    changed_at: str
    changed_by: str | None
    """null for a link, which is told of nobody's account"""


class WallLink(TypedDict):
    """A link that shows the wall to whoever has its secret."""

    id: int
    name: str
    created_at: str
    created_by: str | None
    last_used_at: str | None
    """to within an hour"""
    ends_at: str
    """unless it is used before"""


class WallLinkMade(WallLink):
    secret: str
    """shown this once"""


class SourceState(TypedDict):
    """An element whose rows a tile shows."""

    pipeline: str
    element: str
    title: str
    status: str | None
    """null if it is not there"""
    last_row_at: str | None
    """when it last committed a batch with rows; null if it never did"""
    problem: str | None
    """why there is nothing to show"""


class FigureState(TypedDict):
    at: str | None
    """the row's own time"""
    value: Number | str | bool | None
    every_s: Number | None
    """how far apart rows usually are in their own time; null if that is not known"""
    points: list[tuple[int, Number]]
    """the newest rows: time in ms since 1970, and value"""


class Limits(TypedDict):
    low: Number | None
    high: Number | None


class PictureElement(TypedDict):
    id: str
    title: str
    category: str
    """of its operator; empty if nobody knows it"""
    x: Number
    y: Number
    inputs: list[str]
    """the streams that it reads: `element` or `element.port`"""
    status: str


class PictureState(TypedDict):
    title: str
    status: str
    elements: list[PictureElement]


class TileState(TypedDict):
    sources: list[SourceState]
    alarm: Severity | None
    """the worst active alarm of an element that it shows, or whose limit it shows"""
    """one for each series"""
    figure: FigureState | None
    rows: Peeked | None
    """of a table: its newest rows, with the columns of the tile and no key"""
    picture: PictureState | None
    limits: Limits | None
    """of the alarm that the tile names, as it runs; null if it names none, or that one does not run"""


class LoadPoint(ElementPoint, NodePoint):
    """A point of an element or of a node, with only what the tile shows."""


class LoadAnswer(TypedDict):
    points: list[LoadPoint]
    """one every 2 s, of the last hour, oldest first"""
    problem: dict[str, Any] | None
    """as an answer of its own would be"""


class CurveAnswer(TypedDict):
    curve: Curve | None
    """null without a problem: there was no time for it in this look"""
    problem: dict[str, Any] | None
    """as an answer of its own would be"""


class WallLook(TypedDict):
    """What a wall shows."""

    at: str
    revision: int
    """of the wall that this is about"""
    tiles: dict[str, TileState]
    """by their ids: what they show beside curves and load"""
    curves: list[CurveAnswer]
    """in the order in which they were asked for"""
    loads: list[LoadAnswer]
