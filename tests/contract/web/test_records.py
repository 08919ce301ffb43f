"""Tests the pages of streams and dead letters: the web reads them from the real Kafka."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from functools import partial
from typing import Any
from urllib.parse import urlencode

import numpy as np
import pyarrow as pa
import pytest
from asgiref.sync import async_to_sync
from kafka import KafkaProducer

from pipeline_runtime.journal.records import Boundary, Commit, encode
from pipeline_runtime.kafka.admin import Topic, ensure_topics
from pipeline_runtime.kafka.arrow_batches import ROWS_MIN, Rows
from pipeline_runtime.kafka.clients import KafkaSettings
from pipeline_runtime.kafka.letters import open_letters
from pipeline_runtime.kafka.outgoing import OutgoingRows
from pipeline_runtime.kafka.peek import peek
from pipeline_runtime.kafka.transactions import OutgoingRecord, Transactions
from pipeline_runtime.model.ids import Epoch, Seq, dead_letter_topic, journal_topic, stream_topic
from pipeline_runtime.wire import tasks
from tests.contract.web.conftest import PIPELINE, Caller, audited
from tests.contract.web.test_permissions import assert_problem
from tests.waiting import PATIENCE_S, wait_until
from webapp.api import streams as stream_routes
from webapp.audit.models import AuditRecord
from webapp.handovers.models import LetterOrder
from webapp.monitoring import letters as monitored_letters
from webapp.placements.models import Deployment, GroupPlacement

Call = Callable[[str | None], Caller]
E = f"/pipelines/{PIPELINE}/elements"


@pytest.fixture
def records(
    kafka: str, settings: Any, deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> KafkaSettings:
    """Three records in variation's stream, one dead letter of power."""
    security = {"bootstrap_timeout_ms": PATIENCE_S * 1000}
    settings.FOGLINE = settings.FOGLINE.model_copy(update={"kafka": kafka, "kafka_security": security})
    monkeypatch.setattr(stream_routes, "peek", partial(peek, timeout_s=PATIENCE_S))
    monkeypatch.setattr(monitored_letters, "open_letters", partial(open_letters, timeout_s=PATIENCE_S))
    broker = KafkaSettings(kafka)
    stream, dead = stream_topic(deployment.pk, "variation"), dead_letter_topic(deployment.pk, "power")
    ensure_topics(broker, [Topic(stream), Topic(dead, "dead")])
    transactions = Transactions(broker, f"test.{deployment.pk}")
    transactions.initialise()
    letter = {"reason": "not a number", "raw": "x,y", "element": "power", "input": "in"}
    transactions.commit(
        [
            *(OutgoingRecord(stream, json.dumps({"value": n}).encode(), b"key", 1000 + n) for n in range(3)),
            OutgoingRecord(dead, json.dumps(letter).encode()),
        ]
    )
    transactions.close()
    await_records(broker, stream, 3)
    await_records(broker, dead, 1)
    return broker


def await_records(broker: KafkaSettings, topic: str, count: int) -> None:
    """The broker answers a commit before it has written its markers, and up to these readers see nothing."""
    wait_until(lambda: len(peek(broker, topic, count)) == count, f"{count} records of {topic} to be readable")


@pytest.mark.usefixtures("records")
def test_the_newest_records_of_a_stream_and_its_dead_letters_can_be_seen(caller: Call) -> None:
    viewer = caller("viewer")
    streams = f"/pipelines/{PIPELINE}/streams"
    found = viewer.get(f"{streams}/variation/peek?limit=2").json()["records"]
    assert [record["value"] for record in found] == [{"value": 1}, {"value": 2}]
    assert found[0]["key"] == "key"
    assert found[0]["at"] == "1970-01-01T00:00:01.001000+00:00"
    # A chart has no output: it shows what it reads.
    chart = viewer.get(f"{streams}/chart/peek").json()
    assert (chart["stream"], len(chart["records"])) == ("variation", 3)
    (letter,) = viewer.get(f"{streams}/power/dead-letters").json()["records"]
    assert letter["value"]["reason"] == "not a number"
    assert_problem(viewer.get(f"{streams}/nothing/peek"), 404)
    assert_problem(viewer.get(f"{streams}/variation/peek?limit=0"), 422)


@pytest.fixture
def letters(records: KafkaSettings, deployment: Deployment) -> None:
    """Three more dead letters of power: two with another reason, and one that is no letter at all."""
    dead = dead_letter_topic(deployment.pk, "power")
    sent = [
        {"reason": "too late", "raw": raw, "input": f"readings.out partition 0 offset {n}", **about}
        for n, (raw, about) in enumerate([("a,1", {"key": "m1", "time_ms": 1000}), ('b,"2"', {})])
    ]
    transactions = Transactions(records, f"letters.{deployment.pk}")
    transactions.initialise()
    transactions.commit(
        [*(OutgoingRecord(dead, json.dumps(each).encode()) for each in sent), OutgoingRecord(dead, b"broken")]
    )
    transactions.close()
    await_records(records, dead, 4)


@pytest.mark.usefixtures("letters")
def test_dead_letters_are_grouped_by_reason_and_searched(caller: Call) -> None:
    viewer, path = caller("viewer"), f"/pipelines/{PIPELINE}/streams/power/dead-letters"

    def reasons(found: Any) -> list[tuple[str, int]]:
        return [(group["reason"], group["count"]) for group in found["groups"]]

    whole = viewer.get(path).json()
    assert reasons(whole) == [("too late", 2), ("not a number", 1), ("No reason given", 1)]
    assert whole["groups"][0]["newest"]["value"]["raw"] == 'b,"2"'
    assert (len(whole["records"]), whole["looked"], whole["more"]) == (4, 4, False)
    late = viewer.get(f"{path}?{urlencode({'reason': 'too late', 'limit': 1})}").json()
    assert [record["value"]["raw"] for record in late["records"]] == ['b,"2"']
    assert reasons(viewer.get(f"{path}?text=X,Y").json()) == [("not a number", 1)]
    assert_problem(viewer.get(f"{path}?limit=501"), 422)
    assert_problem(viewer.get(f"{path}?text={'x' * 1001}"), 422)


@pytest.mark.usefixtures("letters")
def test_what_is_ordered_about_dead_letters_is_audited_and_shown(
    caller: Call, commands: Callable[[], list[Any]]
) -> None:
    operator, editor = caller("operator"), caller("editor")
    path, seen = f"{E}/power/dead-letters", f"/pipelines/{PIPELINE}/streams/power/dead-letters"
    dropped = operator.post(f"{path}/drop", {"offsets": [2, 0], "reason": "too late"})
    assert dropped.status_code == 202
    assert (dropped.json()["letters"], dropped.json()["status"]) == (2, "pending")
    assert audited("element.drop_letters") == 1
    assert [task for task, _ in commands()] == [tasks.LETTERS]
    found = operator.get(seen).json()
    assert [order["did"] for order in found["orders"]] == ["drop"]
    assert found["replay"]["allowed"]
    # not yet dropped, so nothing is to be put back
    assert_problem(operator.post(f"{path}/orders/{dropped.json()['id']}/put-back"), 409)
    assert_problem(operator.post(f"{path}/drop", {"offsets": []}), 422)
    assert_problem(operator.post(f"{path}/drop", {"offsets": [-1]}), 422)

    row = {"offset": 0, "cells": {"mf01": "2,5", "new": 1}, "at": "noon"}
    mended = {"offsets": [0], "rows": [row]}
    assert_problem(operator.post(f"{path}/replay", mended), 403)
    faults = assert_problem(editor.post(f"{path}/replay", mended), 422)["faults"]
    assert {fault["path"] for fault in faults} == {"rows.0.mf01", "rows.0.new", "rows.0._time"}
    assert audited("element.replay_letters") == 0
    refused = assert_problem(editor.post(f"{E}/alerts/dead-letters/replay", {"offsets": [0]}), 409)
    assert "runs as one with" in refused["detail"]


@pytest.mark.usefixtures("letters")
def test_one_order_is_about_all_letters_of_a_reason_that_were_counted(
    caller: Call, commands: Callable[[], list[Any]]
) -> None:
    operator, path = caller("operator"), f"{E}/power/dead-letters"
    counted = operator.get(f"{path}/count?{urlencode({'reason': 'too late'})}").json()
    assert (counted["letters"], counted["first"], counted["more"]) == (2, 0, False)
    with_text = operator.get(f"{path}/count?{urlencode({'reason': 'too late', 'text': 'A,1'})}").json()
    assert with_text["letters"] == 1
    span = {"first": counted["first"], "until": counted["until"]}
    assert_problem(operator.post(f"{path}/drop", {"reason": "nobody said this", "span": span}), 409)
    for unclear in ({"span": span}, {}, {"reason": "too late", "span": span, "offsets": [1]}):
        assert "either" in assert_problem(operator.post(f"{path}/drop", unclear), 422)["detail"]
    mended = {"reason": "too late", "span": span, "rows": []}
    assert_problem(caller("editor").post(f"{path}/replay", mended), 422)
    assert audited("element.drop_letters") == 0

    # Letters that are not there yet are not of it, whatever the client says.
    ordered = operator.post(f"{path}/drop", {"reason": "too late", "span": {"first": 0, "until": 2**53}})
    assert ordered.status_code == 202
    assert (ordered.json()["letters"], ordered.json()["cancel_requested"]) == (2, False)
    record = AuditRecord.objects.get(action="element.drop_letters")
    assert (record.detail["letters"], record.detail["reason"]) == (2, "too late")
    assert LetterOrder.objects.get().until == counted["until"]
    assert [task for task, _ in commands()] == [tasks.LETTERS]
    cancel = f"{path}/orders/{ordered.json()['id']}/cancel"
    assert all(operator.post(cancel).json()["cancel_requested"] for _ in range(2))
    assert audited("element.cancel_letters") == 1
    LetterOrder.objects.update(status="done")
    assert_problem(operator.post(cancel), 409)


@pytest.mark.usefixtures("letters")
def test_dead_letters_are_a_file_of_csv_or_of_json_lines(caller: Call) -> None:
    viewer, path = caller("viewer"), f"/pipelines/{PIPELINE}/streams/power/dead-letters/file"

    def file_of(format: str) -> str:
        response = viewer.get(f"{path}?format={format}")
        assert response.status_code == 200
        assert "attachment" in response["content-disposition"]
        return async_to_sync(joined)(response.streaming_content)

    lines = [json.loads(line) for line in file_of("json-lines").splitlines()]
    rows = list(csv.DictReader(io.StringIO(file_of("csv"))))
    raws = ["x,y", "a,1", 'b,"2"', "broken"]
    assert [line["raw"] for line in lines] == [row["raw"] for row in rows] == raws
    assert [row["reason"] for row in rows] == ["not a number", "too late", "too late", ""]
    assert lines[2]["input"] == rows[2]["input"] == "readings.out partition 0 offset 1"
    about = [lines[1][name] for name in ("time", "key", "topic", "partition", "offset", "letter")]
    topic = viewer.get(path.removesuffix("/file")).json()["topics"]["readings.out"]
    assert topic.endswith(".readings.out")
    assert about == ["1970-01-01T00:00:01+00:00", "m1", topic, 0, 0, 2]
    assert (lines[2]["time"], lines[2]["key"], rows[2]["time"]) == (None, None, "")
    assert_problem(viewer.get(f"{path}?format=exe"), 422)


@pytest.mark.usefixtures("letters")
def test_rows_of_an_element_with_several_inputs_are_mended_one_input_at_a_time(
    caller: Call, records: KafkaSettings, deployment: Deployment
) -> None:
    placement = GroupPlacement.objects.get(deployment=deployment, group="power")
    [read], [element] = placement.spec["inputs"], placement.spec["elements"]
    of_other = {"fields": [{"name": "limit", "type": "number"}]}
    topics = {"readings.out": read["topic"], "other.out": stream_topic(deployment.pk, "other")}
    other = {**read, "source": "other.out", "topic": topics["other.out"], "data_schema": of_other}
    placement.spec["inputs"] = [read, other]
    placement.spec["elements"] = [{**element, "inputs": {"left": "readings.out", "right": "other.out"}}]
    placement.save()
    ensure_topics(records, [Topic(topic) for topic in topics.values()])
    editor, path = caller("editor"), f"{E}/power/dead-letters"
    late = {"reason": "too late", "raw": '{"limit": 3}', "input": "other.out partition 0 offset 0"}
    with closing(Transactions(records, f"other.{deployment.pk}")) as transactions:
        transactions.initialise()
        transactions.commit(
            [OutgoingRecord(dead_letter_topic(deployment.pk, "power"), json.dumps(late).encode())]
        )
    await_records(records, dead_letter_topic(deployment.pk, "power"), 5)

    seen = editor.get(f"/pipelines/{PIPELINE}/streams/power/dead-letters").json()
    assert (seen["topics"], seen["replay"]["allowed"]) == (topics, True)
    found = editor.get(f"{path}/rows?{urlencode({'reason': 'too late'})}").json()
    assert (found["topic"], [each["name"] for each in found["columns"]]) == (topics["other.out"], ["limit"])
    assert (found["more"], [each["cells"] for each in found["rows"]]) == (True, [{"limit": 3}])
    [offset] = [each["offset"] for each in found["rows"]]
    for cells, status in (({"mf01": 1}, 422), ({"limit": 4}, 202)):
        row = {"offset": offset, "cells": cells, "at": "2024-05-01T12:00:00Z"}
        assert editor.post(f"{path}/replay", {"offsets": [offset], "rows": [row]}).status_code == status


async def joined(parts: AsyncIterator[bytes]) -> str:
    return b"".join([part async for part in parts]).decode()


def test_the_queue_of_a_stream_says_what_its_reader_has_read_and_what_waits(
    caller: Call, records: KafkaSettings, deployment: Deployment
) -> None:
    stream, journal = stream_topic(deployment.pk, "readings"), journal_topic(deployment.pk, "power")
    ensure_topics(records, [Topic(stream), Topic(journal, "journal")])
    begun = Commit(Epoch(1), Boundary(Seq(3), {f"{stream}-0": 2}, 1000))
    transactions = Transactions(records, f"queue.{deployment.pk}")
    transactions.initialise()
    rows = [(b"a", {"mf01": 1.5}), (b"b", {"mf01": 2.5}), (b"a", {"mf01": 3.5}), (b"b", {"mf01": 4.5})]
    sent = [
        OutgoingRecord(stream, json.dumps(row).encode(), key, 1000 + n) for n, (key, row) in enumerate(rows)
    ]
    transactions.commit([*sent, OutgoingRecord(journal, encode(begun))])
    transactions.close()
    await_records(records, stream, 4)
    await_records(records, journal, 1)
    viewer, path = caller("viewer"), f"/pipelines/{PIPELINE}/streams/readings.out/queue"

    def found(**asked: Any) -> list[tuple[float, bool]]:
        queue = viewer.get(f"{path}?{urlencode({'reader': 'power', **asked})}").json()
        assert queue["known"]
        return [(record["value"]["mf01"], record["waits"]) for record in queue["records"]]

    assert found() == [(1.5, False), (2.5, False), (3.5, True), (4.5, True)]
    assert found(limit=2) == [(2.5, False), (3.5, True)]
    assert found(key="a") == [(1.5, False), (3.5, True)]
    assert found(text="4.5") == [(4.5, True)]
    assert found(from_ms=1002) == [(3.5, True), (4.5, True)]
    columns = viewer.get(f"{path}?reader=power").json()["columns"]
    assert {"name": "mf01", "type": "integer", "unit": None} in columns
    # the same for all streams, whether or not they have rows
    running = viewer.get(f"/pipelines/{PIPELINE}/streams").json()
    assert running["version"] == deployment.version.number
    assert running["schemas"]["readings.out"]["fields"] == columns
    assert running["schemas"].keys() >= {"power.out", "variation.out"}
    # the dashboard reads for a view, and nothing waits inside a group
    of_view = viewer.get(f"/pipelines/{PIPELINE}/streams/variation/queue?reader=chart").json()
    assert (of_view["known"], len(of_view["records"])) == (False, 3)
    assert_problem(viewer.get(f"{path}?reader=power&limit=501"), 422)
    assert_problem(viewer.get(path), 422)


@pytest.mark.usefixtures("records")
def test_a_chart_asks_for_a_window_then_for_what_is_new_and_for_a_span(caller: Call) -> None:
    viewer, path = caller("viewer"), f"/pipelines/{PIPELINE}/streams/variation/curve"

    def values(**asked: Any) -> list[Any]:
        answer = viewer.get(f"{path}?{urlencode({'window_ms': 600, **asked})}").json()
        assert answer["rows"] >= len(answer["records"])
        assert answer["left_out"] == 0
        return [record["value"]["value"] for record in answer["records"]]

    whole = viewer.get(f"{path}?window_ms=600").json()
    # as long as a chart may show
    assert viewer.get(f"{path}?window_ms={31 * 86_400_000}").status_code == 200
    assert (whole["stream"], whole["rows"], len(whole["records"])) == ("variation", 3, 3)
    assert values(after=whole["cursor"]) == []
    assert values(after="0:1", columns="value") == [1, 2]
    assert values(from_ms=1000, to_ms=1001) == [0, 1]
    assert_problem(viewer.get(f"{path}?after=everything"), 422)
    assert_problem(viewer.get(f"{path}?pixels=100000"), 422)


def test_rows_that_lie_in_columns_are_queued_drawn_and_traced_one_by_one(
    caller: Call, records: KafkaSettings, deployment: Deployment
) -> None:
    readings, variation, alerts = (
        stream_topic(deployment.pk, each) for each in ("readings", "variation", "alerts")
    )
    journal = journal_topic(deployment.pk, "power")
    ensure_topics(records, [Topic(readings), Topic(alerts), Topic(journal, "journal")])
    count = 4 * ROWS_MIN
    table = pa.table({"mf01": pa.array(range(count))})
    keys = pa.array([b"ab"[n % 2 : n % 2 + 1] for n in range(count)], pa.binary())
    rows = Rows(keys, 2000 + 10 * np.arange(count), table)
    window = {
        "window_start": "1970-01-01T00:00:02.5Z",
        "window_end": "1970-01-01T00:00:02.6Z",
        "mf01_average": 54.5,
    }
    begun = Commit(Epoch(1), Boundary(Seq(3), {f"{readings}-0": 120}, 1000))
    transactions = Transactions(records, f"columns.{deployment.pk}")
    transactions.initialise()
    made = [OutgoingRecord(topic, json.dumps(window).encode(), None, 2600) for topic in (variation, alerts)]
    transactions.commit([OutgoingRows(readings, rows), *made, OutgoingRecord(journal, encode(begun))])
    transactions.close()
    for topic, rows_there in ((readings, count), (variation, 4), (alerts, 1), (journal, 1)):
        await_records(records, topic, rows_there)
    viewer, streams = caller("viewer"), f"/pipelines/{PIPELINE}/streams"

    def numbers(found: Any) -> list[int]:
        return [record["value"]["mf01"] for record in found["records"]]

    queue = viewer.get(f"{streams}/readings.out/queue?reader=power&limit=4").json()
    assert [(record["value"]["mf01"], record["waits"]) for record in queue["records"]] == [
        (118, False),
        (119, False),
        (120, True),
        (121, True),
    ]
    of_key = viewer.get(f"{streams}/readings.out/queue?reader=power&limit=2&key=b&from_ms=3500").json()
    assert numbers(of_key) == [151, 153]
    curve = viewer.get(f"{streams}/readings/curve?window_ms=9999&from_ms=2500&to_ms=2540").json()
    assert numbers(curve) == [50, 51, 52, 53, 54]
    trace = viewer.get(f"{streams}/alerts/trace?partition=0&offset=0").json()
    assert numbers(trace["steps"][-1]) == [*range(50, 60)]


def test_a_whole_number_keeps_all_its_digits(
    caller: Call, records: KafkaSettings, deployment: Deployment
) -> None:
    stream = stream_topic(deployment.pk, "power")
    ensure_topics(records, [Topic(stream)])
    row = {"meter_kwh": 1234567.5, "mains_hz": 49.998, "asset_id": 123456789012345678, "small": 2**53}
    transactions = Transactions(records, f"digits.{deployment.pk}")
    transactions.initialise()
    transactions.commit([OutgoingRecord(stream, json.dumps(row).encode(), None, 1000)])
    transactions.close()
    await_records(records, stream, 1)
    [shown] = caller("viewer").get(f"/pipelines/{PIPELINE}/streams/power/peek").json()["records"]
    assert shown["value"] == row | {"asset_id": "123456789012345678"}


def test_a_peek_counts_records_and_not_the_markers_of_transactions(
    caller: Call, records: KafkaSettings, deployment: Deployment
) -> None:
    stream = stream_topic(deployment.pk, "power")
    ensure_topics(records, [Topic(stream)])
    transactions = Transactions(records, f"many.{deployment.pk}")
    transactions.initialise()
    transactions.commit([OutgoingRecord(stream, b"%d" % n, None, 1000 + n) for n in range(5)])
    transactions.close()
    aborting = KafkaProducer(bootstrap_servers=records.bootstrap, transactional_id=f"void.{deployment.pk}")
    aborting.init_transactions()
    for _ in range(40):  # what was never committed takes offsets as well
        aborting.begin_transaction()
        aborting.send(stream, b"void").get(PATIENCE_S)
        aborting.abort_transaction()
    aborting.close()
    await_records(records, stream, 5)
    found = caller("viewer").get(f"/pipelines/{PIPELINE}/streams/power/peek?limit=3").json()["records"]
    assert [record["value"] for record in found] == [2, 3, 4]


def test_records_that_no_calendar_has_or_json_cannot_say_are_shown_all_the_same(
    caller: Call, records: KafkaSettings, deployment: Deployment
) -> None:
    stream = stream_topic(deployment.pk, "power")
    ensure_topics(records, [Topic(stream)])
    written = [
        (b'{"value": 1}', -(10**14)),
        (b"NaN", -1000),
        (b"9" * 5000, 1000),
        (b"[" * 5000, 2000),
        (rb'"\ud800"', 3000),
        (b"\xff\x00", 4000),
    ]
    transactions = Transactions(records, f"times.{deployment.pk}")
    transactions.initialise()
    transactions.commit([OutgoingRecord(stream, value, None, time_ms) for value, time_ms in written])
    transactions.close()
    await_records(records, stream, len(written))
    response = caller("viewer").get(f"/pipelines/{PIPELINE}/streams/power/peek")
    assert response.status_code == 200
    found = response.json()["records"]
    assert [record["at"] for record in found[:3]] == [
        None,
        "1969-12-31T23:59:59+00:00",
        "1970-01-01T00:00:01+00:00",
    ]
    assert found[0]["value"] == {"value": 1}
    shown = [value.decode(errors="replace") for value, _ in written[1:]]
    # An escape stands for what no text can have.
    shown[3] = r"\ud800"
    shown[4] = "\N{REPLACEMENT CHARACTER}\\x00"
    assert [record["value"] for record in found[1:]] == shown


def test_without_kafka_a_peek_says_who_is_away(caller: Call, deployment: Deployment, settings: Any) -> None:
    security = {"bootstrap_timeout_ms": 500}
    settings.FOGLINE = settings.FOGLINE.model_copy(
        update={"kafka": "127.0.0.1:1", "kafka_security": security}
    )
    problem = assert_problem(caller("viewer").get(f"/pipelines/{PIPELINE}/streams/variation/peek"), 503)
    assert "Kafka" in problem["detail"]


def test_a_row_is_traced_through_a_group_to_the_readings_that_it_was_made_from(
    caller: Call, records: KafkaSettings, deployment: Deployment
) -> None:
    readings, variation, alerts = (
        stream_topic(deployment.pk, each) for each in ("readings", "variation", "alerts")
    )
    ensure_topics(records, [Topic(readings), Topic(alerts)])
    transactions = Transactions(records, f"trace.{deployment.pk}")
    transactions.initialise()
    window = {
        "window_start": "1970-01-01T00:00:02Z",
        "window_end": "1970-01-01T00:00:03Z",
        "mf01_average": 40.0,
    }
    sent = [
        OutgoingRecord(readings, json.dumps({"mf01": n}).encode(), None, time_ms)
        for n, time_ms in enumerate([1900, 2000, 2500, 2999, 3000, 4000])
    ]
    sent += [OutgoingRecord(topic, json.dumps(window).encode(), None, 3000) for topic in (variation, alerts)]
    transactions.commit(sent)
    transactions.close()
    await_records(records, readings, 6)
    await_records(records, variation, 4)
    await_records(records, alerts, 1)
    viewer, path = caller("viewer"), f"/pipelines/{PIPELINE}/streams/alerts/trace"
    trace = viewer.get(f"{path}?partition=0&offset=0").json()
    assert (trace["element"], trace["record"]["value"]) == ("alerts", window)
    # They run as one, and a chart reads the stream between them: so it is in a topic.
    inside, window_rows = trace["steps"]
    assert (inside["element"], inside["stream"], inside["kept"]) == ("alerts", "variation.out", True)
    assert [record["value"] for record in inside["records"]] == [window]
    assert (window_rows["element"], window_rows["stream"]) == ("variation", "readings.out")
    assert [record["value"]["mf01"] for record in window_rows["records"]] == [1, 2, 3]
    assert (window_rows["count"], window_rows["notes"]) == (3, [])
    assert [end["element"] for end in trace["ends"]] == ["readings"]
    # one that is not there, and what cannot be meant
    assert_problem(viewer.get(f"{path}?partition=0&offset=99"), 404)
    assert_problem(viewer.get(f"{path}?partition=7&offset=0"), 404)
    assert_problem(viewer.get(f"{path}?partition=-1&offset=0"), 422)
