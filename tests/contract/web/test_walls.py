"""Walls over REST: made, saved, deleted; and links, which show one wall to people without an account."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from pipeline_runtime.kafka.admin import Topic, ensure_topics
from pipeline_runtime.kafka.clients import KafkaSettings
from pipeline_runtime.kafka.peek import newest_offsets, peek, peek_each
from pipeline_runtime.kafka.transactions import OutgoingRecord, Transactions
from pipeline_runtime.model.ids import stream_topic
from pipeline_runtime.wire import keys
from tests.contract.web.conftest import PIPELINE, PREFIX, Caller, audited
from tests.contract.web.test_permissions import ENDPOINTS, assert_problem
from tests.waiting import PATIENCE_S, wait_until
from webapp.accounts.models import User
from webapp.moments import iso_of_ms
from webapp.placements.models import Deployment
from webapp.walls import actions, showing
from webapp.walls.models import KeptBlock, KeptSeries, Wall, WallLink
from workers.control.walls import WallHistories

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


# --- walls --------------------------------------------------------------------------------------
def test_a_wall_has_the_id_of_its_first_title_and_is_listed(caller: Call) -> None:
    wall = made(caller, " Fräsen  Halle 1 ")
    assert (wall["id"], wall["title"], wall["revision"]) == ("fraesen-halle-1", "Fräsen Halle 1", 1)
    assert made(caller, "警報")["id"] == "wall"
    assert_problem(caller("operator").post("/walls", {"title": "FRÄSEN halle 1"}), 409)
    renamed = put(caller, wall["id"], 1, title="Other", tiles=[TEXT]).json()
    assert (renamed["id"], renamed["title"], renamed["revision"]) == ("fraesen-halle-1", "Other", 2)
    assert [(each["title"], each["tiles"]) for each in caller("viewer").get("/walls").json()] == [
        ("Other", 1),
        ("警報", 0),
    ]
    assert caller("operator").delete("/walls/wall").status_code == 204
    assert_problem(caller("operator").delete("/walls/wall"), 404)
    assert [audited(f"wall.{action}") for action in ("create", "save", "delete")] == [2, 1, 1]


def test_tiles_follow_a_pipeline_that_gets_another_id(caller: Call) -> None:
    caller("editor").post("/pipelines", {"name": "press"})
    of_press = {**SERIES, "pipeline": "press"}
    tiles = [
        {**CHART, "series": [of_press, SERIES]},
        {**FIGURE, "series": of_press},
        {**TABLE, "pipeline": "press"},
        {**PICTURE, "pipeline": "press"},
        TEXT,
    ]
    wall = made(caller, "Hall", *tiles)
    other = made(caller, "Other", TABLE)
    assert caller("editor").post("/pipelines/press/rename", {"name": "press-2"}).status_code == 200
    found = caller("viewer").get(f"/walls/{wall['id']}").json()
    chart, figure, table, picture, _ = found["tiles"]
    assert [each["pipeline"] for each in chart["series"]] == ["press-2", PIPELINE]
    assert [each["pipeline"] for each in (figure["series"], table, picture)] == ["press-2"] * 3
    assert found["revision"] == wall["revision"] + 1
    assert caller("viewer").get(f"/walls/{other['id']}").json() == other


def test_a_save_of_an_older_revision_is_refused_and_the_same_save_changes_nothing(caller: Call) -> None:
    wall = made(caller, "Hall", TEXT)
    again = put(caller, "hall", wall["revision"], title="Hall", tiles=wall["tiles"])
    assert (again.status_code, again.headers["ETag"]) == (200, f'"{wall["revision"]}"')
    problem = assert_problem(put(caller, "hall", 1, title="Hall", tiles=[]), 409)
    assert (problem["code"], problem["revision"]) == ("wall-overtaken", wall["revision"])
    assert problem["theirs"] == wall
    assert_problem(caller("operator").put("/walls/hall", {"title": "Hall", "tiles": []}), 428)
    assert caller("viewer").get("/walls/hall").json() == wall
    assert audited("wall.save") == 1


def test_each_kind_of_tile_comes_back_as_it_was_saved(caller: Call) -> None:
    tiles = [CHART | {"annotations": [NOTE], "low": 1, "high": 2.5}, FIGURE, TABLE, PICTURE, LOAD, TEXT]
    wall = made(caller, "Hall", *tiles)
    for tile, stored in zip(tiles, wall["tiles"], strict=True):
        assert {name: stored[name] for name in tile if name not in ("series", "annotations")} == {
            name: value for name, value in tile.items() if name not in ("series", "annotations")
        }
    [series] = wall["tiles"][0]["series"]
    assert series == SERIES | {
        "output": "",
        "key": None,
        "by": None,
        "axis": "left",
        "compare_yesterday": False,
    }
    assert saved(caller, wall, *wall["tiles"]) == wall


def test_an_annotation_says_who_wrote_it_whatever_is_sent(caller: Call) -> None:
    wall = made(caller, "Hall", CHART | {"annotations": [NOTE]})
    [note] = wall["tiles"][0]["annotations"]
    assert note["by"] == "operator-user"
    more = wall["tiles"][0] | {"annotations": [note, NOTE | {"text": "later"}]}
    response = caller("editor").put(
        "/walls/hall", {"title": "Hall", "tiles": [more]}, **{"If-Match": f'"{wall["revision"]}"'}
    )
    assert [each["by"] for each in response.json()["tiles"][0]["annotations"]] == [
        "operator-user",
        "editor-user",
    ]


WRONG: dict[str, Any] = {
    "no place": {"id": "a", "kind": "text", "text": ""},
    "beyond the right edge": TEXT | {"x": 20, "w": 5},
    "outside": TEXT | {"x": 24},
    "too far down": TEXT | {"y": 201},
    "no width": TEXT | {"w": 0},
    "a kind that is not there": TEXT | {"kind": "video"},
    "a field that is not there": TEXT | {"html": "<b>"},
    "too long a text": TEXT | {"text": "x" * 2001},
    "an id with a slash": TEXT | {"id": "a/b"},
    "no series": CHART | {"series": []},
    "too many series": CHART | {"series": [SERIES] * 9},
    "too long a range": CHART | {"range_s": 32 * 86_400},
    "too short a range": CHART | {"range_s": 59},
    "limits that cross": FIGURE | {"low": 2, "high": 2},
    "an output that is no port": FIGURE | {"series": SERIES | {"output": "a.b"}},
    "too many annotations": CHART | {"annotations": [NOTE] * 51},
    "too long an annotation": CHART | {"annotations": [NOTE | {"text": "x" * 121}]},
    "a time without a zone": CHART | {"annotations": [NOTE | {"at": "2026-11-20T12:00:00"}]},
    "too many columns": TABLE | {"columns": ["a"] * 13},
    "too many rows": TABLE | {"rows": 51},
    "load of nothing": LOAD | {"element": ""},
    "load of two things": LOAD | {"node": "edge-a"},
    "load of a node that only elements have": LOAD | {"pipeline": "", "element": "", "node": "edge-a"},
    "load of an element that only nodes have": LOAD | {"figure": "cpu"},
    "too long a load": LOAD | {"range_s": 3601},
}


@pytest.mark.parametrize("what", WRONG)
def test_a_tile_that_is_wrong_is_refused_with_its_place(caller: Call, what: str) -> None:
    wall = made(caller)
    faults = assert_problem(put(caller, "hall", 1, title="Hall", tiles=[WRONG[what]]), 422)["faults"]
    assert all(fault["path"].startswith("tiles.0") for fault in faults)
    assert caller("viewer").get("/walls/hall").json() == wall


def test_a_wall_has_bounds(caller: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    made(caller)
    tiles = [TEXT | {"id": f"t{n}"} for n in range(61)]
    assert_problem(put(caller, "hall", 1, title="Hall", tiles=tiles), 422)
    assert put(caller, "hall", 1, title="Hall", tiles=tiles[:60]).status_code == 200
    assert_problem(put(caller, "hall", 2, title="Hall", tiles=[TEXT, TEXT]), 422)  # two of one id
    monkeypatch.setattr(actions, "CHARACTERS_MAX", 50)
    assert_problem(put(caller, "hall", 2, title="Hall", tiles=[TEXT]), 422)
    monkeypatch.setattr(actions, "WALLS_MAX", 1)
    assert_problem(caller("operator").post("/walls", {"title": "More"}), 409)
    monkeypatch.setattr(actions, "LINKS_MAX", 0)
    assert_problem(caller("operator").post("/walls/hall/links", {"name": "x"}), 409)


# --- what it shows ------------------------------------------------------------------------------
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


@pytest.fixture
def topic(kafka: str, settings: Any, deployment: Deployment, monkeypatch: pytest.MonkeyPatch) -> str:
    """The topic of the stream that the tiles show, with three rows of one machine and one of another."""
    settings.FOGLINE = settings.FOGLINE.model_copy(update={"kafka": kafka})
    for each in (peek, peek_each):
        monkeypatch.setattr(showing, each.__name__, partial(each, timeout_s=PATIENCE_S))
    name = stream_topic(deployment.pk, "variation")
    ensure_topics(KafkaSettings(kafka), [Topic(name)])
    rows = [(b"a", 1, 1000), (b"b", 7, 2000), (b"a", 2, 3000), (b"a", 4, 4000)]
    send(KafkaSettings(kafka), name, [(key, float(n), at_ms) for key, n, at_ms in rows])
    return name


def seen(response: Any) -> list[tuple[Any, Any]]:
    assert response.status_code == 200, response.content
    return [(record["key"], record["value"]) for record in response.json()["records"]]


@pytest.mark.usefixtures("topic")
def test_tiles_show_the_columns_that_they_name_and_nothing_else(caller: Call) -> None:
    of_a = SERIES | {"key": "a"}
    gone = FIGURE | {"id": "gone", "series": SERIES | {"pipeline": "gone"}}
    tiles = [CHART | {"series": [SERIES, of_a]}, FIGURE | {"series": of_a}, TABLE, PICTURE, gone]
    made(caller, "Hall", *tiles)
    shown = by_link(caller, "hall")
    t = "/walls/hall/tiles"
    whole = [(None, {"mf01": n}) for n in (1, 7, 2, 4)]
    assert seen(shown.get(f"{t}/t/curve?window_ms=60000")) == whole
    assert seen(shown.get(f"{t}/t/curve?series=1&window_ms=60000")) == [whole[0], *whole[2:]]
    assert seen(shown.get(f"{t}/t/curve?from_ms=1000&to_ms=2000")) == whole[:2]
    assert seen(shown.get(f"{t}/rows/rows")) == whole[2:]
    for wrong in (f"{t}/t/curve?series=2", f"{t}/t/curve?series=8", f"{t}/rows/curve", f"{t}/t/rows"):
        assert_problem(shown.get(wrong), 422)
    assert_problem(shown.get(f"{t}/nothing/rows"), 404)
    found = shown.get("/walls/hall/state").json()["tiles"]
    figure = found["f"]["figure"]
    assert (figure["value"], figure["at"]) == (4, "1970-01-01T00:00:04+00:00")
    assert (figure["every_s"], figure["points"]) == (1.5, [[1000, 1], [3000, 2], [4000, 4]])
    assert [source["status"] for source in found["t"]["sources"]] == ["running"] * 2
    assert found["gone"]["sources"][0]["problem"] == 'There is no pipeline "gone".'
    assert "secret" not in json.dumps(found)


def test_a_chart_of_an_hour_is_drawn_from_what_is_kept_and_goes_on_in_the_topic(
    caller: Call, kafka: str, topic: str
) -> None:
    by = SERIES | {"by": "secret"}
    made(caller, "Hall", CHART | {"range_s": 3600, "series": [SERIES, SERIES | {"key": "a"}, by]})
    broker, path, hour = KafkaSettings(kafka), "/walls/hall/tiles/t/curve", 3_600_000
    send(broker, topic, [(b"a", float(n % 7), 1_000_000 + 100 * n) for n in range(2000)])
    context: Any = SimpleNamespace(kafka=broker, closing=threading.Event())

    def kept_all() -> WallHistories:
        """A keeper that has read and stored all of the topic."""
        keeper = WallHistories(context)
        _, end = newest_offsets(broker, topic, 1)[0]

        def is_read() -> bool:
            keeper.look()
            # Behind the last row lies the marker of its commit.
            return all(kept.positions.get(0, 0) >= end - 1 for kept in keeper._kept.values())

        wait_until(is_read, "the stream to be read")
        keeper.flush()
        return keeper

    keeper = kept_all()
    assert KeptSeries.objects.count() == 3
    viewer = caller("viewer")
    whole = viewer.get(f"{path}?window_ms={hour}&pixels=4000").json()
    assert whole["rows"] == 2004
    assert seen(viewer.get(f"{path}?after={whole['cursor']}")) == []  # exactly all of it
    of_a = viewer.get(f"{path}?series=1&window_ms={hour}&pixels=4000").json()
    assert of_a["rows"] == 2003
    curves = viewer.get(f"{path}?series=2&window_ms={hour}&pixels=4000").json()["records"]
    assert {each["value"]["secret"] for each in curves} == {f"{n}.0" for n in (*range(7), 7)}
    keeper.let_go()

    # Another keeper reads on where the history ends, and counts no row twice.
    send(broker, topic, [(b"b", 50.0, 1_400_000)])
    kept_all().let_go()
    again = viewer.get(f"{path}?window_ms={hour}&pixels=4000").json()
    assert (again["rows"], again["left_out"]) == (2005, 0)
    assert again["records"][-1]["value"] == {"mf01": 50}

    # The least, the greatest and the last row of each second, and nothing that is no row.
    old = viewer.get(f"{path}?from_ms=1000000&to_ms=1099999&pixels=4000").json()
    expected = set()
    for begin in range(0, 1000, 10):
        second = range(begin, begin + 10)
        expected |= {min(second, key=lambda n: n % 7), max(second, key=lambda n: n % 7), second[-1]}
    assert old["rows"] == 1000
    drawn = {each["at"]: each["value"]["mf01"] for each in old["records"]}
    assert drawn == {iso_of_ms(1_000_000 + 100 * n): n % 7 for n in expected}


def test_a_history_that_no_chart_shows_goes_a_day_later(transactional_db: None) -> None:
    series = KeptSeries.objects.create(id="x", topic="t")
    KeptBlock.objects.create(series=series, part="", step_ms=1000, start_ms=0, cells=b"")
    context: Any = SimpleNamespace(kafka=None, closing=threading.Event())
    WallHistories(context).look()
    assert KeptSeries.objects.get().unused_since is not None
    WallHistories(context).look()
    assert KeptBlock.objects.count() == 1
    KeptSeries.objects.update(unused_since=timezone.now() - timedelta(days=1, seconds=1))
    WallHistories(context).look()
    assert KeptSeries.objects.count() == KeptBlock.objects.count() == 0


@pytest.mark.usefixtures("deployment")
def test_a_tile_of_load_shows_its_figures_and_no_others(caller: Call, real_redis: Any) -> None:
    node = LOAD | {"id": "n", "figure": "cpu", "pipeline": "", "element": "", "node": "edge-a"}
    made(caller, "Hall", LOAD, node, LOAD | {"id": "gone", "element": "gone"})
    shown = by_link(caller, "hall")
    deployment = Deployment.objects.get()
    of_element, of_node = keys.element_history(deployment.pk, "variation"), keys.node_history("edge-a")
    for t in (1000, 3000):
        real_redis.rpush(of_element, json.dumps({"t": t, "lag_rows": t // 1000, "state_bytes": 1}))
        real_redis.rpush(of_node, json.dumps({"t": t, "cpu_ratio": 0.5, "memory_ratio": 0.1}))
    t = "/walls/hall/tiles"
    assert shown.get(f"{t}/l/load").json() == {
        "points": [{"t": 1000, "lag_rows": 1}, {"t": 3000, "lag_rows": 3}]
    }
    assert shown.get(f"{t}/n/load?after=1000").json() == {"points": [{"t": 3000, "cpu_ratio": 0.5}]}
    assert_problem(shown.get(f"{t}/l/rows"), 422)
    found = shown.get("/walls/hall/state").json()["tiles"]
    assert [source["title"] for source in found["l"]["sources"]] == ["variation"]
    assert found["n"]["sources"] == []
    assert "no element" in found["gone"]["sources"][0]["problem"]


@pytest.mark.usefixtures("deployment")
def test_a_picture_has_no_parameters(caller: Call) -> None:
    made(caller, "Hall", PICTURE)
    picture = by_link(caller, "hall").get("/walls/hall/state").json()["tiles"]["p"]["picture"]
    assert picture["title"] == PIPELINE
    [power] = [element for element in picture["elements"] if element["id"] == "power"]
    assert power == {
        "id": "power",
        "title": "power",
        "category": "state",
        "x": 0,
        "y": 0,
        "inputs": ["readings"],
        "status": "running",
    }
    assert "demo:debs2012" not in json.dumps(picture)


@pytest.mark.django_db
def test_elements_without_a_place_stand_in_a_row(caller: Call) -> None:
    elements = [{"id": id, "type": "generator", "params": {"rate": 1}} for id in ("a", "b")]
    document = {
        "apiVersion": "fogline/v1",
        "kind": "Pipeline",
        "metadata": {"name": "row"},
        "spec": {"elements": elements},
    }
    assert caller("editor").post("/pipelines", {"name": "row", "document": document}).status_code == 201
    made(caller, "Hall", PICTURE | {"pipeline": "row"})
    picture = caller("viewer").get("/walls/hall/state").json()["tiles"]["p"]["picture"]
    assert [(element["x"], element["y"]) for element in picture["elements"]] == [(0, 0), (300, 0)]


@pytest.mark.usefixtures("deployment")
def test_without_kafka_a_wall_shows_the_rest_and_says_why(caller: Call, settings: Any) -> None:
    away = {"kafka": "127.0.0.1:1", "kafka_security": {"bootstrap_timeout_ms": 200}}
    settings.FOGLINE = settings.FOGLINE.model_copy(update=away)
    other = FIGURE | {"id": "other", "series": SERIES | {"element": "power"}}
    made(caller, "Hall", FIGURE, other, PICTURE)
    found = caller("viewer").get("/walls/hall/state").json()["tiles"]
    for id in ("f", "other"):
        [source] = found[id]["sources"]
        assert (found[id]["figure"], source["status"]) == (None, "running")
        assert "Kafka does not answer" in source["problem"]
    assert found["p"]["picture"]["status"] == "running"


# --- links --------------------------------------------------------------------------------------
def linked(caller: Call, wall: str) -> dict[str, Any]:
    response = caller("operator").post(f"/walls/{wall}/links", {"name": "screen"})
    assert response.status_code == 201, response.content
    found: dict[str, Any] = response.json()
    return found


def with_secret(secret: str) -> Caller:
    return Caller(Client(headers={"Authorization": f"Bearer {secret}"}))


def by_link(caller: Call, wall: str) -> Caller:
    return with_secret(linked(caller, wall)["secret"])


def test_a_link_shows_its_wall_and_names_nobody(caller: Call) -> None:
    made(caller, "Hall", CHART | {"annotations": [NOTE]})
    made(caller, "Other")
    shown = by_link(caller, "hall")
    wall = shown.get("/walls/hall").json()
    assert (wall["title"], wall["changed_by"]) == ("Hall", None)
    assert [note["by"] for note in wall["tiles"][0]["annotations"]] == [""]
    assert "operator-user" not in json.dumps(shown.get("/walls/hall/state").json())
    for part in ("", "/state", "/tiles/t/curve", "/tiles/t/rows", "/tiles/t/load"):
        assert_problem(shown.get(f"/walls/other{part}"), 403)


@pytest.mark.usefixtures("deployment")
def test_a_link_opens_nothing_but_five_ways_to_look_at_its_wall(caller: Call) -> None:
    made(caller, "Hall", CHART)
    shown = by_link(caller, "hall")
    opened = {
        (method, path.split("?")[0])
        for method, path, body, _ in ENDPOINTS
        if shown.call(method, path, body).status_code != 401
    }
    looks = ("", "/state", "/tiles/t/curve", "/tiles/t/rows", "/tiles/t/load")
    assert opened == {("GET", f"/walls/hall{part}") for part in looks}
    assert shown.http.get("/").status_code == 302


def test_a_secret_is_shown_once_and_is_neither_stored_nor_logged(
    caller: Call, caplog: pytest.LogCaptureFixture
) -> None:
    made(caller)
    with caplog.at_level(logging.DEBUG):
        link = linked(caller, "hall")
        with_secret(link["secret"]).get("/walls/hall")
        with_secret(link["secret"] + "x").get("/walls/hall")
    assert link["secret"].startswith("fogline_wall_")
    assert link["secret"] not in caplog.text
    assert "secret" not in caller("operator").get("/walls/hall/links").json()[0]
    stored = [value for row in WallLink.objects.values() for value in row.values()]
    assert link["secret"] not in stored


def test_a_revoked_link_opens_nothing(caller: Call) -> None:
    made(caller)
    link = linked(caller, "hall")
    shown = with_secret(link["secret"])
    assert shown.get("/walls/hall").status_code == 200
    assert caller("operator").delete(f"/walls/hall/links/{link['id']}").status_code == 204
    assert "revoked" in assert_problem(shown.get("/walls/hall"), 401)["detail"]
    assert_problem(caller("operator").delete(f"/walls/hall/links/{link['id']}"), 404)
    assert caller("operator").get("/walls/hall/links").json() == []
    assert [audited(f"wall.{action}") for action in ("share", "revoke")] == [1, 1]


def test_a_link_is_revoked_at_its_own_wall_alone(caller: Call) -> None:
    made(caller)
    made(caller, "Other")
    link = linked(caller, "hall")
    assert_problem(caller("operator").delete(f"/walls/other/links/{link['id']}"), 404)
    assert with_secret(link["secret"]).get("/walls/hall").status_code == 200


def test_a_link_ends_after_30_days_without_use(caller: Call) -> None:
    made(caller)
    link = linked(caller, "hall")
    shown = with_secret(link["secret"])

    def last(**ago: int) -> None:
        WallLink.objects.update(last_used_at=timezone.now() - timedelta(**ago))

    last(days=29, hours=23)
    assert shown.get("/walls/hall").status_code == 200
    used = WallLink.objects.get().last_used_at
    assert used is not None
    assert timezone.now() - used < timedelta(hours=1)
    last(minutes=50)
    noted = WallLink.objects.get().last_used_at
    assert shown.get("/walls/hall").status_code == 200
    assert WallLink.objects.get().last_used_at == noted  # written at most once an hour
    last(days=30)
    assert_problem(shown.get("/walls/hall"), 401)
    assert caller("operator").get("/walls/hall/links").json() == []
    WallLink.objects.update(last_used_at=None, created_at=timezone.now() - timedelta(days=30))
    assert_problem(shown.get("/walls/hall"), 401)  # it was never used
    linked(caller, "hall")
    assert WallLink.objects.count() == 1  # the ended one is gone


def test_a_link_ends_with_its_wall(caller: Call) -> None:
    made(caller)
    shown = by_link(caller, "hall")
    caller("operator").delete("/walls/hall")
    made(caller)  # another wall of the same id
    assert_problem(shown.get("/walls/hall"), 401)


def test_a_link_counts_also_where_somebody_has_signed_in(caller: Call, users: dict[str, User]) -> None:
    made(caller)
    made(caller, "Other")
    secret = linked(caller, "hall")["secret"]
    signed_in = caller("operator").http
    answer = signed_in.get(f"{PREFIX}/walls/other", headers={"Authorization": f"Bearer {secret}"})
    assert answer.status_code == 403
    answer = signed_in.get(f"{PREFIX}/walls/other", headers={"Authorization": "Bearer fogline_wall_x"})
    assert answer.status_code == 401
    assert Wall.objects.count() == 2
