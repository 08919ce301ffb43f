"""A pipeline goes to another Fogline with its state: its output is that of one that never stopped."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import httpx
import pytest

from pipeline_runtime.model.templates import load_template
from tests.integration.pipelines.driving import API, LOOK_EVERY_S, START_S, deploy
from tests.oracles import numbers_average
from tests.running import RunningFogline
from tests.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.full, pytest.mark.timeout(900)]

PIPELINE = "carried-state"
PATH = f"{API}/pipelines/{PIPELINE}"
RATE = 400
BEFORE = 1000
"""The first Fogline writes at least so many of the averages."""


def document() -> dict[str, Any]:
    found = load_template("numbers-average").to_data()
    found["metadata"]["name"] = PIPELINE
    source = found["spec"]["elements"][0]
    source["params"]["rate"] = RATE
    return found


def averages(client: httpx.Client) -> list[float]:
    answer = client.get(f"{PATH}/elements/file/output")
    rows = csv.DictReader(io.StringIO(answer.text)) if answer.is_success else []
    return [float(row["average"]) for row in rows if row.get("average")]


def test_a_pipeline_goes_on_in_another_fogline_as_if_it_had_never_stopped(
    fogline: RunningFogline, client: httpx.Client, tmp_path: Path
) -> None:
    expected = [row["average"] for row in numbers_average.expected()["average"]]
    deploy(client, document())
    wait_until(
        lambda: len(averages(client)) >= BEFORE, "the first averages", START_S, look_every_s=LOOK_EVERY_S
    )
    assert client.get(f"{PATH}/state").status_code == 409
    wait_until(
        lambda: client.post(f"{PATH}/state").raise_for_status().json()["ready"],
        "the boundary",
        START_S,
        look_every_s=LOOK_EVERY_S,
    )
    text = client.get(f"{PATH}/state").raise_for_status().content
    written = averages(client)
    assert BEFORE <= len(written) < len(expected)

    with RunningFogline(tmp_path / "other", ("edge-a",)) as second, second.client() as other:
        broken = other.post(f"{API}/states", files={"file": ("x.state", text[:-20])})
        assert (broken.status_code, other.get(PATH).status_code) == (422, 404)
        other.post(f"{API}/states", files={"file": ("x.state", text)}).raise_for_status()
        assert other.get(PATH).json()["document"]["spec"]["elements"][0]["params"]["rate"] == RATE
        wait_until(
            lambda: other.post(f"{PATH}/deploy").status_code == 202,
            "a node",
            START_S,
            look_every_s=LOOK_EVERY_S,
        )
        wait_until(
            lambda: len(averages(other)) >= len(expected), "the rest", START_S, look_every_s=LOOK_EVERY_S
        )
        assert averages(other) == pytest.approx(expected)
        assert averages(client) == written
