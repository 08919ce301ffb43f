"""Files that users reported as wrongly read: uploaded, answered, imported, replayed, and written again."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import httpx
import pytest

from tests.integration.pipelines.driving import API, START_S, deploy, element, settled_file
from tests.integration.pipelines.file_cases import DIALECTS, TIMES, VALUES, Case, Cell, loggers
from tests.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.full, pytest.mark.timeout(600)]

KINDS = {
    "dialects": DIALECTS,
    "values": VALUES,
    "times": TIMES,
    "loggers": loggers(),
}


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_written_of_a_file_is_what_stands_in_it(client: httpx.Client, kind: str) -> None:
    """All files of a kind in one pipeline, which is deployed once."""
    cases = KINDS[kind]
    pipeline = f"cases-{kind}"
    references = {case.id: imported(client, case) for case in cases}
    deploy(client, document(pipeline, cases, references))
    wait_until(
        lambda: all(element(client, pipeline, f"{case.id}-out")["ended"] for case in cases),
        "all rows to be written",
        START_S,
    )
    for case in cases:
        header, rows = table(client, pipeline, case)
        assert header == case.header, case.name
        wrong = [
            (number, name, cell, right_cell)
            for number, (row, right) in enumerate(zip(rows, case.rows, strict=False), 1)
            for name, cell, right_cell in zip(header, row, right, strict=True)
            if cell != right_cell
        ]
        assert wrong == [], case.name
        assert len(rows) == len(case.rows), case.name


def imported(client: httpx.Client, case: Case) -> str:
    """Uploads a case's file and answers what is asked. Returns its reference."""
    answer = client.post(f"{API}/files", files={"file": (case.name, case.bytes)})
    assert answer.status_code == 201, answer.text
    found = settled_file(client, answer.json()["id"])
    questions = {each["id"]: each for each in found["detection"]["questions"]}
    assert questions.keys() == case.answers.keys(), (case.name, questions)
    if questions:
        answers = {}
        for id, changes in case.answers.items():
            made = [choice["changes"] for choice in questions[id]["choices"]]
            assert changes in made, (case.name, made)
            answers[id] = made.index(changes)
        body = {"answers": answers}
        client.post(f"{API}/files/{found['id']}/import", json=body).raise_for_status()
        found = settled_file(client, found["id"])
    assert found["state"] == "imported", (case.name, found)
    assert (found["report"]["dead"], found["report"]["skipped"]) == (0, case.skipped), case.name
    units = {each["name"]: each["unit"] for each in found["reading"]["columns"] if each["unit"]}
    assert case.units.items() <= units.items(), (case.name, units)
    for text in case.says:
        assert any(text in note for note in found["detection"]["notes"]), (case.name, found["detection"])
    return str(found["reference"])


def document(pipeline: str, cases: Sequence[Case], references: dict[str, str]) -> dict[str, Any]:
    elements: list[dict[str, Any]] = []
    groups = []
    for case in cases:
        first = len(elements)
        params = {"path": references[case.id], "restamp": False} | dict(case.replay)
        elements.append({"id": case.id, "type": "csv-replay", "params": params})
        last = case.id
        if case.through is not None:
            last = f"{case.id}-through"
            elements.append({"id": last, "inputs": {"in": case.id}, **case.through})
        sink: dict[str, Any] = {"file": f"{case.id}.csv", "time": case.with_time}
        if case.with_time or case.through is not None:
            sink["columns"] = case.header[1:] if case.with_time else case.header
        elements.append({"id": f"{case.id}-out", "type": "csv-sink", "inputs": {"in": last}, "params": sink})
        groups.append({"id": f"{case.id}-all", "elements": [each["id"] for each in elements[first:]]})
    return {
        "apiVersion": "fogline/v1",
        "kind": "Pipeline",
        "metadata": {"name": pipeline},
        "spec": {"elements": elements, "groups": groups},
    }


def table(client: httpx.Client, pipeline: str, case: Case) -> tuple[list[str], list[list[Cell]]]:
    """What was written, each cell read as what the right one in its place is."""
    path = f"{API}/pipelines/{pipeline}/elements/{case.id}-out/output"
    text = client.get(path).raise_for_status().content.decode()
    header, *lines = csv.reader(io.StringIO(text, newline=""))
    rows: list[list[Cell]] = []
    for number, line in enumerate(lines):
        right = case.rows[number] if number < len(case.rows) else [None] * len(line)
        rows.append([_as(cell, like) for cell, like in zip(line, right, strict=True)])
    return header, rows


def _as(text: str, like: Cell) -> Cell:
    try:
        if isinstance(like, float):
            return float(text)
        if isinstance(like, datetime):
            return datetime.fromisoformat(text)
    except ValueError:
        return text
    return text or None
