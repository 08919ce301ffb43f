"""What a preview shows of an element is what the element puts out once it is deployed, for each operator."""

from __future__ import annotations

import csv
import io
import json
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import httpx
import pytest
from kafka import KafkaProducer

from pipeline_runtime.model.ids import stream_topic
from pipeline_runtime.model.preview import SHOWN_MAX
from pipeline_runtime.operators.registry import default_registry
from tests.handover.tail import Tail
from tests.integration.pipelines.driving import (
    API,
    LOOK_EVERY_S,
    START_S,
    create_topic,
    deploy_draft,
    element,
    upload,
)
from tests.running import RunningFogline
from tests.unit.preview.cases import BEGIN, CASES, sample
from tests.unit.preview.previewing import COLUMNS
from tests.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

PIPELINE = "agrees"
PATH = f"{API}/pipelines/{PIPELINE}"
SOME = ("derive", "window-aggregate", "keyed-aggregate", "hysteresis-alarm")
BY_THE_CLOCK = "silence-alarm"
BY_THE_BATCH = "keyed-aggregate"
"""It puts out a row of each key for each batch, and the batches of a preview are others."""
ON_ITS_WAY = ("busy", "fetching", "starting", "reading", "too-long")
"""Why a node gives no answer yet. A busy machine may need longer than a preview may take."""
NAMES = [each["name"] for each in COLUMNS]
PACE = {"rate": 1e6, "restamp": False, "key": "k"}
QUIET_S, QUIET_RATE = 4, 5.0

Row = dict[str, Any]
Shown = tuple[int, str | None, Row]
"""Time in ms, key and values."""


def draft(elements: list[Row], groups: list[Row]) -> Row:
    return {
        "apiVersion": "fogline/v1",
        "kind": "Pipeline",
        "metadata": {"name": PIPELINE},
        "spec": {"elements": [{**each, "node": "edge-a"} for each in elements], "groups": groups},
    }


def topic_in(id: str, topics: str) -> Row:
    read = {"topic": f"{topics}-{id}", "columns": COLUMNS, "key": "k", "time": {"from": "at"}}
    return {"id": id, "type": "kafka-in", "params": read}


def case(type_: str, source: str, prefix: str = "") -> Row:
    ports = [port.name for port in default_registry().get(type_).inputs]
    inputs = dict(zip(ports, (source, "other"), strict=False))
    return {"id": prefix + type_, "type": type_, "params": CASES[type_], "inputs": inputs}


def of_topics(types: list[str], topics: str) -> tuple[list[Row], list[Row]]:
    """The elements that read a topic, and a group of those without state: each other one is a group of its
    own. A topic has no end, so nothing lets out what it keeps back."""
    sources = [topic_in(each, topics) for each in (("in", "other") if "merge" in types else ("in",))]
    elements = [*sources, *(case(each, "in") for each in types)]
    for each in elements:
        if each["type"] == "kafka-out":
            each["params"] = {"topic": f"{topics}-out"}
    plain = [each["id"] for each in elements if not default_registry().get(each["type"]).stateful]
    return elements, [{"id": "plain", "elements": plain}]


def of_file(file: str) -> tuple[list[Row], list[Row]]:
    """Elements on a file. It has an end, at which they let out what they keep back."""
    elements = [
        {"id": "file", "type": "csv-replay", "params": {**PACE, "path": file}},
        case("derive", "file", "file-"),
        case("window-aggregate", "file-derive", "file-"),
        {"id": "written", "type": "csv-sink", "params": {"file": "rows.csv"}, "inputs": {"in": "file"}},
    ]
    return elements, [{"id": "of-file", "elements": [each["id"] for each in elements]}]


def others(file: str, quiet: str) -> list[Row]:
    """Sources by themselves, and an alarm that goes by the clock."""
    rest = {"rate": QUIET_RATE, "restamp": False, "key": "k"}
    made = {"rate": 100, "rows": 100, "keys": 3, "signals": [{"name": "x", "shape": "walk"}]}
    return [
        {"id": "replayed", "type": "csv-replay", "params": {**PACE, "path": file}},
        {"id": "made", "type": "generator", "params": made},
        {"id": "machines", "type": "csv-replay", "params": {**rest, "path": quiet}},
        {
            "id": BY_THE_CLOCK,
            "type": BY_THE_CLOCK,
            "params": {"for_s": QUIET_S, "key": "k"},
            "inputs": {"in": "machines"},
        },
    ]


def as_csv(rows: list[Row]) -> str:
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(["at", *NAMES])
    for row in rows:
        table.writerow([row["_time"].isoformat(), *cells(row)])
    return text.getvalue()


def cells(row: Row) -> list[str]:
    """As texts of a CSV file."""
    return ["" if row[name] is None else str(row[name]).lower() for name in NAMES]


def quiet_rows() -> list[Row]:
    """Both machines say something in turn, but a is silent for a while that is long even beside a machine
    that stands still for seconds."""
    told = ["a", "b"] * 10 + ["b"] * int(8 * QUIET_S * QUIET_RATE) + ["a", "b"] * 10
    return [
        {"_time": BEGIN + timedelta(seconds=n / QUIET_RATE), "k": k, "x": 1.0, "n": n, "flag": True}
        for n, k in enumerate(told)
    ]


def send(bootstrap: str, topic: str, rows: list[Row]) -> None:
    create_topic(bootstrap, topic)
    producer = KafkaProducer(bootstrap_servers=bootstrap)
    for row in rows:
        record = {"at": row["_time"].isoformat(), **{name: row[name] for name in NAMES}}
        producer.send(topic, json.dumps(record).encode())
    producer.flush()
    producer.close()


class Compared:
    """The previews of the elements, and what these put out."""

    def __init__(self, client: httpx.Client, bootstrap: str) -> None:
        self._client, self._bootstrap = client, bootstrap
        self._deployment = ""
        self._previews: dict[str, Row] = {}

    def preview(self, *ids: str) -> None:
        """As the editor asks for it, until the node has an answer."""
        for id in ids:
            self._previews[id] = wait_until(lambda id=id: self._answer(id), f"the preview of {id}")  # type: ignore[misc]

    def _answer(self, id: str) -> Row | None:
        found: Row = self._client.post(f"{PATH}/elements/{id}/preview").raise_for_status().json()
        if found["trouble"] is not None:
            assert found["trouble"]["kind"] in ON_ITS_WAY, (id, found["trouble"])
            return None
        return found

    def deploy(self) -> None:
        self._deployment = deploy_draft(self._client, PIPELINE)

    def put_out(self, id: str, topic: str | None = None) -> list[Shown]:
        tail = Tail(self._bootstrap, topic or stream_topic(self._deployment, id))
        try:
            records = tail.records()
        finally:
            tail.close()
        keys = [None if each.key is None else each.key.decode() for each in records]
        return [
            (each.timestamp, key, json.loads(each.value)) for each, key in zip(records, keys, strict=True)
        ]

    def wait_until_read(self, ids: list[str]) -> None:
        """Until the elements have committed all rows that came to their previews."""
        wanted = {id: sum(each["count"] for each in self._previews[id]["inputs"]) for id in ids}

        def left() -> list[str]:
            found = self._client.get(f"{PATH}/elements").raise_for_status().json()
            read = {each["id"]: each["rows_in_total"] or 0 for each in found}
            return [id for id, count in wanted.items() if read[id] < count]

        wait_until(lambda: not left(), lambda: f"{left()} to read on", START_S, look_every_s=LOOK_EVERY_S)

    def wait_until_ended(self, id: str) -> None:
        wait_until(
            lambda: element(self._client, PIPELINE, id)["ended"],
            f"the end of {id}",
            START_S,
            look_every_s=LOOK_EVERY_S,
        )

    def shown(self, id: str) -> tuple[list[Shown], int]:
        """What the preview shows of the output, or of the input of a sink; and how many rows there were."""
        answer = self._previews[id]
        assert answer["whole"] or answer["newest"], (id, answer["read"])
        stream = answer["output"] or answer["inputs"][0]
        names = [each["name"] for each in stream["columns"]]
        rows = [
            (ms_of(row["at"]), row["key"], dict(zip(names, row["values"], strict=True)))
            for row in stream["rows"]
        ]
        return rows, stream["count"]

    def agrees(self, id: str, topic: str | None = None) -> None:
        """Row by row, with keys, times, order and dead letters."""
        rows, count = self.shown(id)
        found = self.put_out(id, topic)
        if id == BY_THE_BATCH:
            rows, found = newest(rows), newest(found)
            count = len(rows)
        part = found[-SHOWN_MAX:] if self._previews[id]["newest"] else found[:SHOWN_MAX]
        assert part == rows, id
        assert len(found) == count > 0, id
        letters = self._client.get(f"{PATH}/streams/{id}/dead-letters?limit=500").raise_for_status().json()
        reasons = [each["value"]["reason"] for each in letters["records"]]
        told = [each["reason"] for each in self._previews[id]["letters"]]
        assert len(reasons) == self._previews[id]["letters_count"], id
        assert (reasons[-SHOWN_MAX:] if self._previews[id]["newest"] else reasons[:SHOWN_MAX]) == told, id


def newest(rows: list[Shown]) -> list[Shown]:
    """The last row of each key."""
    return [*{row[1]: row for row in rows}.values()]


def ms_of(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp() * 1000)


@pytest.mark.parametrize(
    "types",
    [pytest.param(SOME, id="some"), pytest.param(tuple(CASES), id="all", marks=pytest.mark.full)],
)
def test_an_element_puts_out_what_its_preview_showed(
    fogline: RunningFogline, client: httpx.Client, types: tuple[str, ...]
) -> None:
    is_all, of_rows = len(types) == len(CASES), [each for each in types if each != BY_THE_CLOCK]
    topics, rows = f"agrees-{uuid4().hex[:8]}", sample()
    send(fogline.bootstrap, f"{topics}-in", rows)
    send(fogline.bootstrap, f"{topics}-other", [row for row in rows if row["n"] != 4])
    send(fogline.bootstrap, f"{topics}-out", [])
    elements, groups = of_topics(of_rows, topics)
    if is_all:
        file = upload(client, "agrees.csv", as_csv(rows))
        quiet = upload(client, "quiet.csv", as_csv(quiet_rows()))
        on_file, of_it = of_file(file)
        elements, groups = [*elements, *on_file, *others(file, quiet)], [*groups, *of_it]
    body = {"name": PIPELINE, "document": draft(elements, groups)}
    client.post(f"{API}/pipelines", json=body).raise_for_status()
    compared = Compared(client, fogline.bootstrap)
    wanted = [
        each["id"]
        for each in elements
        if each["id"] not in ("in", "other", "file", "machines", "file-derive")
    ]
    compared.preview(*wanted)

    compared.deploy()
    compared.wait_until_read(of_rows)
    for each in of_rows:
        compared.agrees(each, f"{topics}-out" if each == "kafka-out" else None)
    if is_all:
        ends_of_files(client, compared)


def ends_of_files(client: httpx.Client, compared: Compared) -> None:
    for id in ("file-window-aggregate", "written", "replayed", "made", BY_THE_CLOCK):
        compared.wait_until_ended(id)
    compared.agrees("file-window-aggregate")
    compared.agrees("replayed")
    # Those that go by the clock put out the same at other times.
    for id, names in (("made", ("key", "n", "x")), (BY_THE_CLOCK, ("k", "alarm"))):
        shown, count = compared.shown(id)
        found = compared.put_out(id)
        assert [[row[name] for name in names] for *_, row in found[:SHOWN_MAX]] == [
            [row[name] for name in names] for *_, row in shown
        ]
        assert len(found) == count > 0, id
    rows, _ = compared.shown("written")
    text = client.get(f"{PATH}/elements/written/output").raise_for_status().text
    written = [[row[name] for name in NAMES] for row in csv.DictReader(io.StringIO(text))]
    assert written[:SHOWN_MAX] == [cells(row) for *_, row in rows]
