"""Changes walls and their links."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from django.db import transaction

from webapp.accounts.models import Role, User
from webapp.accounts.permissions import require
from webapp.accounts.tokens import hash_secret, new_secret
from webapp.audit.records import audit
from webapp.pipelines.titles import name_from
from webapp.problems import CORRECT, Conflict, Fault, Invalid, Missing
from webapp.walls.links import LINK_PREFIX, living
from webapp.walls.models import Wall, WallLink
from webapp.walls.selectors import tiles_of, wall_json, wall_with
from webapp.walls.tiles import Tile, signed

WALLS_MAX = 200
LINKS_MAX = 20
"""for each wall"""
CHARACTERS_MAX = 500_000
"""of a wall's tiles as JSON"""
TITLE_MAX = 80
"""characters of a wall's title"""
_NUMBER = re.compile(r"( \d+)?")
"""What a title that was taken already gets: Hall 2."""
SAFE = "Nothing was changed."


@transaction.atomic
def create(actor: User, title: str) -> Wall:
    """Creates an empty wall. Its id is made of its title."""
    require(actor, Role.OPERATOR, "create walls")
    title = _title(title)
    there = list(Wall.objects.only("id", "title"))
    _check_title(title, there)
    if len(there) >= WALLS_MAX:
        raise Conflict(f"There are {WALLS_MAX} walls already.", safe=SAFE, next="Delete one first.")
    id = name_from(title, {wall.id for wall in there}, otherwise="wall")
    wall = Wall.objects.create(id=id, title=title, changed_by=actor)
    audit(actor, "wall.create", id)
    return wall


@transaction.atomic
def save(actor: User, id: str, title: str, tiles: Sequence[Tile], revision: int) -> Wall:
    """Replaces the wall that had `revision`. Saving the same again changes nothing. Conflict carries the
    saved wall."""
    require(actor, Role.OPERATOR, "change walls")
    wall = wall_with(id, for_update=True)
    title = _title(title)
    if wall.revision != revision:
        by = wall.changed_by.username if wall.changed_by else "somebody"
        raise Conflict(
            f'"{wall.title}" was changed by {by} meanwhile: it is at revision {wall.revision}, yours is '
            f"{revision}.",
            safe="The saved wall is in this answer, and is unchanged.",
            next=f'Merge the two and save with If-Match: "{wall.revision}".',
            code="wall-overtaken",
            theirs=wall_json(wall),
            revision=wall.revision,
        )
    if title != wall.title:
        _check_title(title, Wall.objects.exclude(pk=id).only("id", "title"))
    stored = [tile.model_dump(mode="json") for tile in signed(tiles, tiles_of(wall), actor.username)]
    if len(json.dumps(stored, ensure_ascii=False)) > CHARACTERS_MAX:
        _refuse("tiles", f"more than {CHARACTERS_MAX:,} characters of JSON")
    if (title, stored) != (wall.title, wall.tiles):
        wall.title, wall.tiles, wall.changed_by = title, stored, actor
        wall.revision += 1
        wall.save()
        audit(actor, "wall.save", id, revision=wall.revision)
    return wall


@transaction.atomic
def follow_rename(before: str, after: str) -> None:
    """Lets the tiles of all walls name a pipeline by its new id. Who has such a wall open merges it."""
    for wall in Wall.objects.select_for_update():
        tiles = [_renamed(tile, before, after) for tile in wall.tiles]
        if tiles != wall.tiles:
            wall.tiles = tiles
            wall.revision += 1
            wall.save()


@transaction.atomic
def follow_title(pipeline: str, before: str, after: str) -> None:
    """Lets each wall that shows the pipeline and has its title (or that and a number) have its new title."""
    if before == after or not before:
        return
    walls = list(Wall.objects.select_for_update())
    taken = {wall.title.lower() for wall in walls}
    for wall in walls:
        number = wall.title.removeprefix(before)
        title = f"{after[: TITLE_MAX - len(number)]}{number}"
        named = wall.title.startswith(before) and _NUMBER.fullmatch(number)
        if not named or title.lower() in taken or not any(_shows(tile, pipeline) for tile in wall.tiles):
            continue
        taken.add(title.lower())
        wall.title = title
        wall.revision += 1
        wall.save()


def _shows(part: dict[str, Any], pipeline: str) -> bool:
    series = part.get("series")
    parts = series if isinstance(series, list) else [series] if isinstance(series, dict) else []
    return part.get("pipeline") == pipeline or any(_shows(each, pipeline) for each in parts)


def _renamed(part: dict[str, Any], before: str, after: str) -> dict[str, Any]:
    """Returns a tile, or a series of one, with the new id wherever the pipeline had the one before."""
    found = {**part, "pipeline": after} if part.get("pipeline") == before else {**part}
    series = part.get("series")
    if isinstance(series, list):
        found["series"] = [_renamed(one, before, after) for one in series]
    elif isinstance(series, dict):
        found["series"] = _renamed(series, before, after)
    if isinstance(part.get("limit_of"), dict):
        found["limit_of"] = _renamed(part["limit_of"], before, after)
    return found


@transaction.atomic
def delete(actor: User, id: str) -> None:
    """Deletes a wall. Its links end."""
    require(actor, Role.OPERATOR, "delete walls")
    wall = wall_with(id, for_update=True)
    audit(actor, "wall.delete", id, links=wall.links.count())
    wall.delete()


@transaction.atomic
def make_link(actor: User, id: str, name: str) -> tuple[WallLink, str]:
    """Returns a link to the wall, and its secret, which is not stored."""
    require(actor, Role.OPERATOR, "share walls")
    wall = wall_with(id, for_update=True)
    wall.links.exclude(living()).delete()
    if wall.links.count() >= LINKS_MAX:
        raise Conflict(f"This wall has {LINKS_MAX} links already.", safe=SAFE, next="Revoke one first.")
    secret = new_secret(LINK_PREFIX)
    link = WallLink.objects.create(
        wall=wall, name=" ".join(name.split()) or "unnamed", hash=hash_secret(secret), created_by=actor
    )
    audit(actor, "wall.share", id, link=link.name, link_id=link.pk)
    return link, secret


@transaction.atomic
def revoke_link(actor: User, id: str, link_id: int) -> None:
    """Revokes a link: from now on it shows nothing."""
    require(actor, Role.OPERATOR, "revoke links of walls")
    link = wall_with(id).links.filter(pk=link_id).first()
    if link is None:
        raise Missing(f"This wall has no link {link_id}.", next="See the list of the wall's links.")
    audit(actor, "wall.revoke", id, link=link.name, link_id=link_id)
    link.delete()


def _title(title: str) -> str:
    title = " ".join(title.split())
    if not title:
        _refuse("title", "a wall needs a title")
    return title


def _check_title(title: str, others: Iterable[Wall]) -> None:
    if any(title.lower() == wall.title.lower() for wall in others):
        raise Conflict(f'A wall "{title}" exists already.', safe=SAFE, next="Choose another title.")


def _refuse(path: str, message: str) -> NoReturn:
    fault: Fault = {"element": None, "path": path, "message": message, "code": "invalid"}
    raise Invalid(f"This wall cannot be saved: {message}.", safe=SAFE, next=CORRECT, faults=[fault])
