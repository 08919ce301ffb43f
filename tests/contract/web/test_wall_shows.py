"""The content of the tiles of a wall, for users and for everybody who has a link."""

from __future__ import annotations

import json
import threading
from datetime import timedelta
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import pytest
from django.utils import timezone

from pipeline_runtime.kafka.admin import Topic, ensure_topics
from pipeline_runtime.kafka.clients import KafkaSettings
from pipeline_runtime.kafka.peek import newest_offsets
from pipeline_runtime.model.ids import stream_topic
from pipeline_runtime.wire import keys
from tests.contract.web.conftest import PIPELINE
from tests.contract.web.walls import (
    CHART,
    FIGURE,
    LOAD,
    PICTURE,
    SERIES,
    TABLE,
    Call,
    by_link,
    curve,
    look,
    made,
    send,
    tiles_of,
)
from tests.waiting import PATIENCE_S, wait_until
from webapp.moments import iso_of_ms
from webapp.placements.models import Deployment
from webapp.walls import looking, showing
from webapp.walls.models import KeptBlock, KeptSeries
from workers.control.walls import WallHistories


@pytest.fixture
def topic(kafka: str, settings: Any, deployment: Deployment, monkeypatch: pytest.MonkeyPatch) -> str:
    """The topic of the stream that the tiles show, with three rows of one machine and one of another."""
    settings.FOGLINE = settings.FOGLINE.model_copy(update={"kafka": kafka})
    monkeypatch.setattr(showing, "READ_S", PATIENCE_S)
    name = stream_topic(deployment.pk, "variation")
    ensure_topics(KafkaSettings(kafka), [Topic(name)])
    rows = [(b"a", 1, 1000), (b"b", 7, 2000), (b"a", 2, 3000), (b"a", 4, 4000)]
    send(KafkaSettings(kafka), name, [(key, float(n), at_ms) for key, n, at_ms in rows])
    return name


def rows_of(answer: dict[str, Any]) -> list[tuple[Any, Any]]:
    return [(record["key"], record["value"]) for record in answer["records"]]


@pytest.mark.usefixtures("topic")
def test_tiles_show_the_columns_that_they_name_and_nothing_else(caller: Call) -> None:
    of_a = SERIES | {"key": "a"}
    gone = FIGURE | {"id": "gone", "series": SERIES | {"pipeline": "gone"}}
    tiles = [CHART | {"series": [SERIES, of_a]}, FIGURE | {"series": of_a}, TABLE, PICTURE, gone]
    made(caller, "Hall", *tiles)
    shown = by_link(caller, "hall")
    whole = [(None, {"mf01": n}) for n in (1, 7, 2, 4)]
    assert rows_of(curve(shown, window_ms=60_000)) == whole
    assert rows_of(curve(shown, 1, window_ms=60_000)) == [whole[0], *whole[2:]]
    assert rows_of(curve(shown, from_ms=1000, to_ms=2000)) == whole[:2]
    found = tiles_of(shown)
    figure = found["f"]["figure"]
    assert (figure["value"], figure["at"]) == (4, "1970-01-01T00:00:04+00:00")
    assert (figure["every_s"], figure["points"]) == (1.5, [[1000, 1], [3000, 2], [4000, 4]])
    table = found["rows"]["rows"]
    assert (table["stream"], rows_of(table)) == ("variation", whole[2:])
    assert [source["status"] for source in found["t"]["sources"]] == ["running"] * 2
    assert found["gone"]["sources"][0]["problem"] == 'There is no pipeline "gone".'
    assert "secret" not in json.dumps(found)


def test_one_consumer_reads_the_rows_of_all_tiles_and_a_tile_that_fails_leaves_the_others(
    caller: Call, kafka: str, topic: str, deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One stream has four rows, one has many, and one has no topic."""
    opened: list[Any] = []
    peeking = import_module("pipeline_runtime.kafka.peek")  # the package has a function of this name
    real = peeking.open_consumer

    def counted(*args: Any, **options: Any) -> Any:
        opened.append(args)
        return real(*args, **options)

    monkeypatch.setattr(peeking, "open_consumer", counted)
    long = stream_topic(deployment.pk, "readings")
    ensure_topics(KafkaSettings(kafka), [Topic(long, partitions=2)])
    send(KafkaSettings(kafka), long, [(b"%d" % n, float(n), 1000 * n) for n in range(1, 501)])
    elements = ("variation", "readings", "power")
    tables = [TABLE | {"id": f"t{n}", "element": elements[n % 3], "rows": n + 1} for n in range(12)]
    gone = TABLE | {"id": "gone", "element": "gone"}
    missing = SERIES | {"element": "gone"}
    made(caller, "Hall", gone, FIGURE, CHART | {"series": [SERIES, SERIES | {"key": "b"}, missing]}, *tables)
    opened.clear()
    viewer = caller("viewer")
    wanted = [("t", 0), ("t", 1), ("t", 2), ("t", 3), ("t0", 0), ("none", 0), ("f", 0)]
    answer = look(viewer, [{"tile": tile, "series": series} for tile, series in wanted])
    assert len(opened) == 1
    whole, of_b, *wrong, figure = answer["curves"]
    assert [value["mf01"] for _, value in rows_of(whole["curve"])] == [1, 7, 2, 4]
    assert [value["mf01"] for _, value in rows_of(of_b["curve"])] == [7]
    assert rows_of(figure["curve"]) == rows_of(whole["curve"])
    assert [each["curve"] for each in wrong] == [None] * 4
    assert [each["problem"]["status"] for each in wrong] == [404, 422, 422, 404]
    found = answer["tiles"]
    [source] = found["gone"]["sources"]
    assert (found["gone"]["rows"], source["problem"][:23]) == (None, 'There is no element "go')
    assert found["f"]["figure"]["value"] == 4
    newest = {"variation": [1, 7, 2, 4], "readings": [*range(401, 501)], "power": []}
    for tile in tables:
        shown = found[tile["id"]]
        rows = [value["mf01"] for _, value in rows_of(shown["rows"])]
        assert (rows, shown["sources"][0]["problem"]) == (newest[tile["element"]][-tile["rows"] :], None)

    # What is too large together begins later, and what comes too late says so.
    size = len(json.dumps({"mf01": 500.0, "secret": 500.0})) + len(b"500")
    monkeypatch.setattr(showing, "READ_BYTES_MAX", 3 * (2 * size + 1))
    cut = tiles_of(viewer)["t10"]["rows"]
    assert [value["mf01"] for _, value in rows_of(cut)] == [499, 500]
    monkeypatch.setattr(showing, "READ_BYTES_MAX", 3)
    found = tiles_of(viewer)
    assert found["t0"]["sources"][0]["problem"] == "The newest row is too large for a wall."
    assert rows_of(found["t2"]["rows"]) == []
    monkeypatch.setattr(showing, "READ_S", 0.0)
    monkeypatch.setattr(looking, "CURVES_S", 0.0)
    assert look(viewer, [{"tile": "t"}])["curves"] == [{"curve": None, "problem": None}]
    found = tiles_of(viewer)
    assert "did not give the newest rows" in found["t0"]["sources"][0]["problem"]
    assert rows_of(found["t2"]["rows"]) == []


def test_a_cell_of_a_table_has_the_beginning_of_what_is_long() -> None:
    long, small = "x" * 5000, {"a": [1, "b"]}
    assert [showing._short(value) for value in (long, [long], small, 7, None)] == [
        f"{'x' * 200}…",
        f'["{"x" * 198}…',
        small,
        7,
        None,
    ]


def test_a_chart_of_an_hour_is_drawn_from_what_is_kept_and_goes_on_in_the_topic(
    caller: Call, kafka: str, topic: str
) -> None:
    by = SERIES | {"by": "secret"}
    made(caller, "Hall", CHART | {"range_s": 3600, "series": [SERIES, SERIES | {"key": "a"}, by]})
    broker, hour = KafkaSettings(kafka), {"window_ms": 3_600_000, "pixels": 4000}
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
    whole = curve(viewer, **hour)
    assert whole["rows"] == 2004
    assert rows_of(curve(viewer, after=whole["cursor"])) == []  # exactly all of it
    of_a = curve(viewer, 1, **hour)
    assert of_a["rows"] == 2003
    curves = curve(viewer, 2, **hour)["records"]
    assert {each["value"]["secret"] for each in curves} == {f"{n}.0" for n in (*range(7), 7)}
    keeper.let_go()

    # Another keeper reads on where the history ends, and counts no row twice.
    send(broker, topic, [(b"b", 50.0, 1_400_000)])
    kept_all().let_go()
    again = curve(viewer, **hour)
    assert (again["rows"], again["left_out"]) == (2005, 0)
    assert again["records"][-1]["value"] == {"mf01": 50}

    # The least, the greatest and the last row of each second, and nothing that is no row.
    old = curve(viewer, from_ms=1_000_000, to_ms=1_099_999, pixels=4000)
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
    answer = look(shown, loads=[{"tile": "l"}, {"tile": "n", "after": 1000}, {"tile": "none"}])
    of_l, of_n, of_none = answer["loads"]
    assert of_l["points"] == [{"t": 1000, "lag_rows": 1}, {"t": 3000, "lag_rows": 3}]
    assert of_n["points"] == [{"t": 3000, "cpu_ratio": 0.5}]
    assert [each["problem"] and each["problem"]["status"] for each in answer["loads"]] == [None, None, 404]
    assert of_none["points"] == []
    found = answer["tiles"]
    assert [source["title"] for source in found["l"]["sources"]] == ["variation"]
    assert found["n"]["sources"] == []
    assert "no element" in found["gone"]["sources"][0]["problem"]


@pytest.mark.usefixtures("deployment")
def test_a_picture_has_no_parameters(caller: Call) -> None:
    made(caller, "Hall", PICTURE)
    picture = tiles_of(by_link(caller, "hall"))["p"]["picture"]
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
    picture = tiles_of(caller("viewer"))["p"]["picture"]
    assert [(element["x"], element["y"]) for element in picture["elements"]] == [(0, 0), (300, 0)]


@pytest.mark.usefixtures("deployment")
def test_without_kafka_a_wall_shows_the_rest_and_says_why(caller: Call, settings: Any) -> None:
    away = {"kafka": "127.0.0.1:1", "kafka_security": {"bootstrap_timeout_ms": 200}}
    settings.FOGLINE = settings.FOGLINE.model_copy(update=away)
    other = FIGURE | {"id": "other", "series": SERIES | {"element": "power"}}
    made(caller, "Hall", FIGURE, other, TABLE, PICTURE)
    found = tiles_of(caller("viewer"))
    for id in ("f", "other", "rows"):
        [source] = found[id]["sources"]
        assert (found[id]["figure"], found[id]["rows"], source["status"]) == (None, None, "running")
        assert "Kafka does not answer" in source["problem"]
    assert found["p"]["picture"]["status"] == "running"
