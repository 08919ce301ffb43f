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
    """the user who last changed the wall; null if a link opened the wall, because links show no accounts"""


class WallLink(TypedDict):
    """A link that shows the wall to everybody who has its secret."""

    id: int
    name: str
    created_at: str
    created_by: str | None
    last_used_at: str | None
    """when the link was last used, to within an hour"""
    ends_at: str
    """when the link ends; each use of the link moves this time"""


class WallLinkMade(WallLink):
    secret: str
    """the secret of the link, which is shown only this once"""


class SourceState(TypedDict):
    """An element whose rows a tile shows."""

    pipeline: str
    element: str
    title: str
    status: str | None
    """the status of the element; null if there is no such element"""
    last_row_at: str | None
    """when the element last committed a batch with rows; null if it never did"""
    problem: str | None
    """why there are no rows to show"""


class FigureState(TypedDict):
    at: str | None
    """the event time of the row"""
    value: Number | str | bool | None
    every_s: Number | None
    """the usual time between two rows, by their event times; null if it is not known"""
    points: list[tuple[int, Number]]
    """the newest rows, each as (ms since 1970, value)"""


class Limits(TypedDict):
    low: Number | None
    high: Number | None


class PictureElement(TypedDict):
    id: str
    title: str
    category: str
    """the category of the element's operator; empty if the operator is not known"""
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
    """one entry for each series of the tile"""
    alarm: Severity | None
    """the worst active alarm of an element that the tile shows, or whose limit it shows"""
    figure: FigureState | None
    rows: Peeked | None
    """for a table: its newest rows, with the columns of the tile and without keys"""
    picture: PictureState | None
    limits: Limits | None
    """the limits of the alarm that the tile names; null if it names none, or if that alarm does not run"""


class LoadPoint(ElementPoint, NodePoint):
    """The load of an element or a node at one time, with only the figures that the tile shows."""


class LoadAnswer(TypedDict):
    points: list[LoadPoint]
    """a point every 2 s of the last hour, oldest first"""
    problem: dict[str, Any] | None
    """the problem document, as in a separate answer"""


class CurveAnswer(TypedDict):
    curve: Curve | None
    """the curve; null without a problem means that there was no time to read it"""
    problem: dict[str, Any] | None
    """the problem document, as in a separate answer"""


class WallLook(TypedDict):
    """Everything that a wall shows."""

    at: str
    revision: int
    """the revision of the wall that this answer is about"""
    tiles: dict[str, TileState]
    """the states of the tiles, by the tiles' ids; curves and load come separately"""
    curves: list[CurveAnswer]
    """the curves, in the order of the request"""
    loads: list[LoadAnswer]
