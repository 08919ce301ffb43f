"""Walls for the tests: their tiles, and how they are made, saved, and shared by a link."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from django.test import Client

from pipeline_runtime.kafka.clients import KafkaSettings
from pipeline_runtime.kafka.peek import peek
from pipeline_runtime.kafka.transactions import OutgoingRecord, Transactions
from tests.contract.web.conftest import PIPELINE, Caller
from tests.waiting import wait_until

Call = Callable[[str | None], Caller]
SERIES = {"pipeline": PIPELINE, "element": "variation", "column": "mf01"}
PLACE = {"x": 0, "y": 0, "w": 6, "h": 4}
CHART: dict[str, Any] = {"id": "t", "kind": "chart", "series": [SERIES], **PLACE}
FIGURE: dict[str, Any] = {"id": "f", "kind": "figure", "series": SERIES, **PLACE}
TABLE: dict[str, Any] = {
    "id": "rows",
    "kind": "table",
    "pipeline": PIPELINE,
    "element": "variation",
    "columns": ["mf01"],
    "rows": 2,
    **PLACE,
}
PICTURE: dict[str, Any] = {"id": "p", "kind": "picture", "pipeline": PIPELINE, **PLACE}
LOAD: dict[str, Any] = {"id": "l", "kind": "load", "figure": "lag", **PLACE} | {
    "pipeline": PIPELINE,
    "element": "variation",
}
TEXT: dict[str, Any] = {"id": "note", "kind": "text", "text": "Hall 1", **PLACE}
NOTE = {"at": "2026-11-20T12:00:00Z", "text": "new bearing", "by": "somebody else"}


def made(caller: Call, title: str = "Hall", *tiles: dict[str, Any]) -> dict[str, Any]:
    response = caller("operator").post("/walls", {"title": title})
    assert response.status_code == 201, response.content
    found: dict[str, Any] = response.json()
    return saved(caller, found, *tiles) if tiles else found


def saved(caller: Call, wall: dict[str, Any], *tiles: dict[str, Any]) -> dict[str, Any]:
    response = put(caller, wall["id"], wall["revision"], title=wall["title"], tiles=tiles)
    assert response.status_code == 200, response.content
    found: dict[str, Any] = response.json()
    return found


def put(caller: Call, id: str, revision: int, **body: Any) -> Any:
    return caller("operator").put(f"/walls/{id}", body, **{"If-Match": f'"{revision}"'})


def look(shown: Caller, curves: Sequence[Any] = (), loads: Sequence[Any] = ()) -> dict[str, Any]:
    """What a look at the wall `hall` answers."""
    response = shown.post("/walls/hall/look", {"curves": [*curves], "loads": [*loads]})
    assert response.status_code == 200, response.content
    found: dict[str, Any] = response.json()
    return found


def tiles_of(shown: Caller) -> dict[str, Any]:
    found: dict[str, Any] = look(shown)["tiles"]
    return found


def curve(shown: Caller, series: int = 0, tile: str = "t", **span: Any) -> dict[str, Any]:
    [answer] = look(shown, [{"tile": tile, "series": series, **span}])["curves"]
    assert answer["problem"] is None
    found: dict[str, Any] = answer["curve"]
    return found


def linked(caller: Call, wall: str) -> dict[str, Any]:
    response = caller("operator").post(f"/walls/{wall}/links", {"name": "screen"})
    assert response.status_code == 201, response.content
    found: dict[str, Any] = response.json()
    return found


def with_secret(secret: str) -> Caller:
    return Caller(Client(headers={"Authorization": f"Bearer {secret}"}))


def by_link(caller: Call, wall: str) -> Caller:
    return with_secret(linked(caller, wall)["secret"])


def send(broker: KafkaSettings, topic: str, rows: list[tuple[bytes, float, int]]) -> None:
    """Commits rows (key, value, time in ms)."""
    transactions = Transactions(broker, f"walls.{topic}")
    transactions.initialise()
    transactions.commit(
        [
            OutgoingRecord(topic, json.dumps({"mf01": n, "secret": n}).encode(), key, at_ms)
            for key, n, at_ms in rows
        ]
    )
    transactions.close()
    newest = rows[-1][2]
    wait_until(
        lambda: [each.timestamp_ms for each in peek(broker, topic, 1)] == [newest], f"{topic} to be readable"
    )
