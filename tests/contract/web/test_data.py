"""Files, checkpoints and records: what the web reads from the real chunk service and the real Kafka."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import time
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any
from urllib.parse import urlencode

import pytest
from asgiref.sync import async_to_sync
from django.test import AsyncClient

from pipeline_runtime.checkpoint.manifest import Manifest
from pipeline_runtime.journal.records import Boundary, Commit, encode
from pipeline_runtime.kafka.admin import Topic, ensure_topics
from pipeline_runtime.kafka.clients import KafkaSettings, open_producer
from pipeline_runtime.kafka.letters import open_letters
from pipeline_runtime.kafka.peek import peek
from pipeline_runtime.kafka.transactions import OutgoingRecord, Transactions
from pipeline_runtime.model.ids import Epoch, Seq, dead_letter_topic, journal_topic, stream_topic
from pipeline_runtime.wire import tasks
from tests.contract.web.conftest import PIPELINE, Caller, Central, audited, report, upload
from tests.contract.web.test_permissions import assert_problem
from tests.unit.operators import onnx_models
from tests.waiting import PATIENCE_S, wait_until
from webapp.api import streams as stream_routes
from webapp.audit.models import AuditRecord
from webapp.handovers.models import Handover
from webapp.monitoring import letters as monitored_letters
from webapp.nodes.models import Node
from webapp.pipelines import files
from webapp.pipelines.checking import describe_file
from webapp.pipelines.models import DataFile
from webapp.placements.models import Deployment, GroupPlacement

Call = Callable[[str | None], Caller]
E = f"/pipelines/{PIPELINE}/elements"
CSV = b"ts,machine,power\n2012-02-22T16:46:00Z,a,1.5\n2012-02-22T16:46:01Z,b,2\n"


def imported(uploaded: Any, *columns: str) -> str:
    """Makes what the import makes of it, whole numbers. Returns its reference."""
    fields = [{"name": name, "type": "integer", "unit": None} for name in columns]
    file = DataFile.objects.get(pk=uploaded.json()["id"])
    file.state, file.table_sha256 = "imported", "ab" * 32
    file.facts = {"columns": fields, "time": False, "rows": 2}
    file.save()
    return file.reference


# --- files --------------------------------------------------------------------------------------
def test_a_file_goes_to_the_central_store_and_is_described(caller: Call, central: Central) -> None:
    response = upload(caller("editor").http, "../../readings.csv", CSV)
    assert response.status_code == 201
    shown = response.json()
    sha256 = hashlib.sha256(CSV).hexdigest()
    assert (shown["name"], shown["size"], shown["sha256"]) == ("readings.csv", len(CSV), sha256)
    assert shown["reference"] == f"upload:{shown['id']}"
    assert (shown["state"], shown["columns"], shown["uses"]) == ("looking", [], [])
    assert central.files.path(sha256).read_bytes() == CSV
    assert [file["id"] for file in caller("viewer").get("/files").json()] == [shown["id"]]
    assert AuditRecord.objects.filter(action="file.upload").count() == 1


def test_a_source_of_an_uploaded_file_knows_its_columns(caller: Call, central: Central) -> None:
    editor = caller("editor")
    reference = imported(upload(editor.http, "numbers.csv", b"number\n1\n2\n"), "number")
    element = {"id": "numbers", "type": "csv-replay", "params": {"path": reference, "rate": 10}}
    document = {
        "apiVersion": "fogline/v1",
        "kind": "Pipeline",
        "metadata": {"name": "numbers"},
        "spec": {"elements": [element]},
    }
    assert editor.post("/pipelines", {"document": document}).status_code == 201
    found = editor.post("/pipelines/numbers/validate").json()
    assert found["faults"] == []
    assert [field["name"] for field in found["schemas"]["numbers.out"]["fields"]] == ["number"]


def test_a_model_is_described_by_what_goes_in_and_out_and_stored_whole(
    caller: Call, central: Central
) -> None:
    content = onnx_models.linear([[float(n), 1.0] for n in range(20_000)]).SerializeToString()
    assert len(content) > 128 * 1024
    editor = caller("editor")
    shown = upload(editor.http, "Beats.ONNX", content)
    assert shown.status_code == 201
    model = shown.json()
    assert (model["name"], model["size"], model["state"]) == ("Beats.ONNX", len(content), "model")
    assert central.files.path(hashlib.sha256(content).hexdigest()).read_bytes() == content
    assert len(describe_file(model["reference"])) < 200
    for path in ("import", "again"):
        body = {"reading": {"columns": []}}
        assert_problem(editor.post(f"/files/{model['id']}/{path}", body), 409)


def test_a_model_that_does_not_fit_its_columns_is_told_by_its_name(caller: Call, central: Central) -> None:
    editor = caller("editor")
    content = onnx_models.linear([[1.0], [2.0]]).SerializeToString()
    model = upload(editor.http, "sum.onnx", content).json()["reference"]
    table = imported(upload(editor.http, "numbers.csv", b"a,b\n1,2\n"), "a", "b")
    answer = {"id": "asked", "type": "model", "inputs": {"in": "numbers"}}
    document = {
        "apiVersion": "fogline/v1",
        "kind": "Pipeline",
        "metadata": {"name": "asking"},
        "spec": {
            "elements": [
                {"id": "numbers", "type": "csv-replay", "params": {"path": table, "rate": 10}},
                answer,
            ]
        },
    }

    def found(path: str, *columns: str) -> Any:
        params = {"path": path, "inputs": [{"columns": columns}], "outputs": [{"name": "sum"}]}
        changed = {
            **document,
            "spec": {"elements": [document["spec"]["elements"][0], answer | {"params": params}]},
        }
        return editor.post("/pipelines/asking/validate", {"document": changed}).json()

    assert editor.post("/pipelines", {"document": document}).status_code == 201
    assert found(model, "a", "b")["faults"] == []
    fields = found(model, "a", "b")["schemas"]["asked.out"]["fields"]
    assert [(field["name"], field["type"]) for field in fields][-1] == ("sum", "number")
    (fault,) = found(model, "a")["faults"]
    assert "takes 2 of a row, but it gets 1" in fault["message"]
    (fault,) = found(table, "a", "b")["faults"]
    assert fault["message"] == "numbers.csv: it is not an ONNX model"


@pytest.mark.parametrize("content", [CSV, b"\x89PNG\0\0", b"\x08\x08"])
def test_what_is_called_a_model_and_is_none_is_not_stored(
    caller: Call, central: Central, content: bytes
) -> None:
    problem = assert_problem(upload(caller("editor").http, "x.onnx", content), 422)
    assert "not an ONNX model" in problem["detail"]
    assert not DataFile.objects.exists()
    assert not central.files.directory.exists()


def test_a_model_that_is_too_large_is_refused(
    caller: Call, central: Central, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = onnx_models.linear([[1.0]]).SerializeToString()
    monkeypatch.setattr(files, "MODEL_BYTES_MAX", len(content) - 1)
    assert_problem(upload(caller("editor").http, "x.onnx", content), 413)
    assert not DataFile.objects.exists()


def test_who_may_not_upload_stores_nothing(caller: Call, central: Central) -> None:
    for role, status in ((None, 401), ("viewer", 403), ("operator", 403)):
        assert_problem(upload(caller(role).http, "x.csv", CSV), status)
    assert not DataFile.objects.exists()
    assert not central.files.directory.exists()


@pytest.mark.parametrize(("content", "status"), [(b"", 422), (b"x" * 2000, 413)])
def test_a_file_that_is_empty_or_too_large_is_refused(
    caller: Call, central: Central, settings: Any, content: bytes, status: int
) -> None:
    settings.UPLOAD_BYTES_MAX = 1000
    assert_problem(upload(caller("editor").http, "x.csv", content), status)
    assert not DataFile.objects.exists()


def test_without_the_central_store_an_upload_says_who_is_away(caller: Call, settings: Any) -> None:
    settings.FOGLINE = settings.FOGLINE.model_copy(update={"chunk_port": 1})
    problem = assert_problem(upload(caller("editor").http, "x.csv", CSV), 503)
    assert "chunk service" in problem["detail"]
    assert not DataFile.objects.exists()


# --- checkpoints --------------------------------------------------------------------------------
def put_checkpoint(central: Central, group: str, seq: int) -> None:
    manifest = Manifest(
        group=group,
        seq=Seq(seq),
        epoch=Epoch(1),
        version="1",
        node="cloud",
        created_at_ms=int(time.time() * 1000),
        ends={},
        bytes_total=10,
        bytes_new=5,
        files=(),
    )
    central.database.put_manifest(manifest.sealed())


def test_checkpoints_are_those_of_the_central_store_and_one_can_be_restored(
    caller: Call, deployment: Deployment, central: Central
) -> None:
    operator = caller("operator")
    assert operator.get(f"{E}/power/checkpoints").json() == {"checkpoints": []}
    for seq in (5, 9):
        put_checkpoint(central, f"{deployment.pk}.power", seq)
    cloud = Node.objects.get(name="cloud")
    report(deployment, "power", cloud, checkpoint_seq=9, checkpoint_where=["central", "edge-b"])
    found = operator.get(f"{E}/power/checkpoints").json()["checkpoints"]
    assert [(item["seq"], item["node"], item["where"]) for item in found] == [
        (9, "cloud", ["central", "cloud", "edge-b"]),
        (5, "cloud", ["central"]),
    ]
    problem = assert_problem(operator.post(f"{E}/power/restore", {"target": "edge-a", "checkpoint": 7}), 422)
    assert problem["faults"][0]["path"] == "checkpoint"
    assert operator.post(f"{E}/power/restore", {"target": "edge-a", "checkpoint": 5}).status_code == 202
    assert Handover.objects.get().checkpoint_seq == 5


@pytest.mark.parametrize(
    ("reported", "kept"), [(7, 0), (0, 7)], ids=["as its owner says", "its owner was just started"]
)
def test_no_rewind_goes_before_a_restart_without_state(
    caller: Call, deployment: Deployment, central: Central, reported: int, kept: int
) -> None:
    for seq in (5, 7, 9):
        put_checkpoint(central, f"{deployment.pk}.power", seq)
    report(deployment, "power", Node.objects.get(name="cloud"), fresh_from=reported)
    GroupPlacement.objects.filter(deployment=deployment, group="power").update(fresh_from=kept)
    order = {"target": "edge-a", "rewind": True}
    operator = caller("operator")
    problem = assert_problem(operator.post(f"{E}/power/restore", order | {"checkpoint": 5}), 422)
    assert "begun fresh at 7" in problem["faults"][0]["message"]
    assert not Handover.objects.exists()
    assert operator.post(f"{E}/power/restore", order | {"checkpoint": 7}).status_code == 202


# --- outputs ------------------------------------------------------------------------------------
async def test_what_a_sink_wrote_is_streamed_from_its_node_and_only_downloaded(
    users: Any, deployment: Deployment, central: Central
) -> None:
    await Node.objects.filter(name="cloud").aupdate(url=central.url)
    client = AsyncClient()
    await client.aforce_login(users["viewer"])
    response = await client.get(f"/api/v1{E}/archive/output")
    assert response.status_code == 200
    assert response.headers["Content-Type"].startswith("text/csv")
    assert response.headers["Content-Disposition"] == f'attachment; filename="{PIPELINE}-archive.csv"'
    assert sum([len(part) async for part in response]) == 400_000


def test_an_output_that_is_not_there_says_why(caller: Call, deployment: Deployment, central: Central) -> None:
    Node.objects.filter(name="cloud").update(url=central.url)
    assert_problem(caller("viewer").get(f"{E}/power/output"), 404)
    Node.objects.filter(name="cloud").update(up=False)
    problem = assert_problem(caller("viewer").get(f"{E}/archive/output"), 503)
    assert "checkpoints" in problem["safe"]


# --- records ------------------------------------------------------------------------------------
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
        {"reason": "too late", "raw": raw, "input": f"in.out partition 0 offset {n}"}
        for n, raw in enumerate(["a,1", 'b,"2"'])
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
    assert lines[2]["input"] == rows[2]["input"] == "in.out partition 0 offset 1"
    assert_problem(viewer.get(f"{path}?format=exe"), 422)


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
    aborting = open_producer(records, f"void.{deployment.pk}")
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
    shown[3] = r"\ud800"  # an escape stands for what no text can have
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
    readings, alerts = stream_topic(deployment.pk, "readings"), stream_topic(deployment.pk, "alerts")
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
    transactions.commit([*sent, OutgoingRecord(alerts, json.dumps(window).encode(), None, 3000)])
    transactions.close()
    await_records(records, readings, 6)
    await_records(records, alerts, 1)
    viewer, path = caller("viewer"), f"/pipelines/{PIPELINE}/streams/alerts/trace"
    trace = viewer.get(f"{path}?partition=0&offset=0").json()
    assert (trace["element"], trace["record"]["value"]) == ("alerts", window)
    inside, window_rows = trace["steps"]
    assert (inside["element"], inside["stream"], inside["kept"]) == ("alerts", "variation.out", False)
    assert (window_rows["element"], window_rows["stream"]) == ("variation", "readings.out")
    assert [record["value"]["mf01"] for record in window_rows["records"]] == [1, 2, 3]
    assert (window_rows["count"], window_rows["notes"]) == (3, [])
    assert [end["element"] for end in trace["ends"]] == ["readings"]
    # one that is not there, and what cannot be meant
    assert_problem(viewer.get(f"{path}?partition=0&offset=99"), 404)
    assert_problem(viewer.get(f"{path}?partition=7&offset=0"), 404)
    assert_problem(viewer.get(f"{path}?partition=-1&offset=0"), 422)
