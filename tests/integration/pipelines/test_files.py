"""A messy file, from its upload to the rows that come out, through the real services."""

from __future__ import annotations

import csv
import io
from typing import Any

import httpx
import pytest

from tests.integration.pipelines.driving import API, START_S, deploy, element, settled_file
from tests.waiting import wait_until

PIPELINE = "messy-file"
ROWS = 300
UNREADABLE = {40, 41}
DEAD = {70}
GERMAN = "Zeit;Gerät;Leistung\r\n"


def line(n: int) -> str:
    time = "gestern" if n in DEAD else f"01.02.2024 10:{n // 60:02}:{n % 60:02}"
    power = "defekt" if n in UNREADABLE else f"{1 + n // 100}.{n % 100:03}"
    return f"{time};0{n % 3};{power}\r\n"


def expected() -> list[list[str]]:
    """The oracle: 1.008 is more than a thousand, and 01 is a text."""
    rows = []
    for n in range(ROWS):
        if n not in DEAD:
            power = "" if n in UNREADABLE else f"{float((1 + n // 100) * 1000 + n % 100)}"
            rows.append([f"0{n % 3}", power.replace(".", ",")])
    return rows


def document(reference: str) -> dict[str, Any]:
    sink = {"file": "out.csv", "delimiter": ";", "decimal": ",", "byte_order_mark": True}
    return {
        "apiVersion": "fogline/v1",
        "kind": "Pipeline",
        "metadata": {"name": PIPELINE},
        "spec": {
            "elements": [
                {"id": "rows", "type": "csv-replay", "params": {"path": reference, "rate": 1e6}},
                {
                    "id": "out",
                    "type": "csv-sink",
                    "inputs": {"in": "rows"},
                    "params": sink | {"columns": ["Gerät", "Leistung"]},
                },
            ]
        },
    }


@pytest.mark.integration
@pytest.mark.timeout(600)
def test_a_messy_file_is_asked_about_imported_and_replayed_with_the_right_values(
    client: httpx.Client,
) -> None:
    content = (GERMAN + "".join(map(line, range(ROWS)))).encode("cp1252")
    answer = client.post(f"{API}/files", files={"file": ("leistung.csv", content)})
    assert answer.status_code == 201, answer.text
    id = answer.json()["id"]
    asked = settled_file(client, id)
    assert asked["state"] == "asks", asked
    (question,) = asked["detection"]["questions"]

    client.post(f"{API}/pipelines", json={"document": document(f"upload:{id}"), "name": PIPELINE})
    refused = client.post(f"{API}/pipelines/{PIPELINE}/deploy", json={})
    assert refused.status_code == 422
    assert f"leistung.csv: a question about it is open: {question['text']}" in refused.text
    client.delete(f"{API}/pipelines/{PIPELINE}").raise_for_status()

    (thousands,) = [
        number for number, choice in enumerate(question["choices"]) if choice["changes"]["thousands"] == "."
    ]
    body = {"answers": {question["id"]: thousands}}
    client.post(f"{API}/files/{id}/import", json=body).raise_for_status()
    seen = client.post(f"{API}/files/{id}/preview", json={}).raise_for_status().json()
    assert seen["preview"]["rows"][0]["values"][1:] == ["00", 1000.0]
    imported = settled_file(client, id)
    assert (imported["state"], imported["rows"], imported["has_time"]) == ("imported", ROWS, True), imported
    report = imported["report"]
    assert (report["dead"], report["columns"][2]["unreadable"]) == (len(DEAD), len(UNREADABLE))

    deploy(client, document(f"upload:{id}"))
    wait_until(lambda: element(client, PIPELINE, "out")["ended"], "all rows to be written", START_S)
    output = client.get(f"{API}/pipelines/{PIPELINE}/elements/out/output").raise_for_status()
    text = io.StringIO(output.content.decode("utf-8-sig"), newline="")
    header, *rows = csv.reader(text, delimiter=";")
    assert (header, rows) == (["Gerät", "Leistung"], expected())
    kept = client.delete(f"{API}/files/{id}?force=true")
    assert kept.status_code == 409
    assert PIPELINE in kept.text
