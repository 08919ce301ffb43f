"""Reads walls and their links."""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter

from webapp.problems import Missing
from webapp.walls import schemas
from webapp.walls.links import living
from webapp.walls.models import Wall, WallLink
from webapp.walls.tiles import Tile, Tiles

_TILES: TypeAdapter[list[Tile]] = TypeAdapter(Tiles)


def wall_with(id: str, *, for_update: bool = False) -> Wall:
    """Returns the wall, or raises Missing. `for_update` locks its row until the transaction ends."""
    rows = Wall.objects.select_related("changed_by")
    wall = (rows.select_for_update(of=("self",)) if for_update else rows).filter(pk=id).first()
    if wall is None:
        raise Missing(f'There is no wall "{id}".', next="See the list of walls.")
    return wall


def tiles_of(wall: Wall) -> list[Tile]:
    return _TILES.validate_python(wall.tiles)


def all_walls() -> list[schemas.WallItem]:
    return [
        {
            "id": wall.pk,
            "title": wall.title,
            "tiles": len(wall.tiles),
            "changed_at": wall.changed_at.isoformat(),
            "changed_by": wall.changed_by.username if wall.changed_by else None,
        }
        for wall in Wall.objects.select_related("changed_by")
    ]


def wall_json(wall: Wall, *, shared: bool = False) -> schemas.Wall:
    """Returns the wall as JSON. `shared`: for a link, whose answers name nobody's account."""
    tiles = _unsigned(wall.tiles) if shared else wall.tiles
    return {
        "id": wall.pk,
        "title": wall.title,
        "revision": wall.revision,
        "tiles": tiles,
        "changed_at": wall.changed_at.isoformat(),
        "changed_by": wall.changed_by.username if wall.changed_by and not shared else None,
    }


def _unsigned(tiles: list[dict[str, Any]]) -> list[Any]:
    return [
        {**tile, "annotations": [{**note, "by": ""} for note in tile["annotations"]]}
        if "annotations" in tile
        else tile
        for tile in tiles
    ]


def links_of(wall: Wall) -> list[schemas.WallLink]:
    return [link_json(link) for link in wall.links.filter(living()).select_related("created_by")]


def link_json(link: WallLink) -> schemas.WallLink:
    return {
        "id": link.pk,
        "name": link.name,
        "created_at": link.created_at.isoformat(),
        "created_by": link.created_by.username if link.created_by else None,
        "last_used_at": link.last_used_at.isoformat() if link.last_used_at else None,
        "ends_at": link.ends_at.isoformat(),
    }
