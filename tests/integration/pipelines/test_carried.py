"""A pipeline goes to another Fogline with its state, and without: its output is that of one that never
stopped."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import httpx
import pytest

from pipeline_runtime.model.templates import load_template
from tests.integration.pipelines.driving import API, LOOK_EVERY_S, START_S, deploy
from tests.integration.pipelines.template_runs import Row, assert_same, put_out
from tests.oracles import numbers_average
from tests.running import RunningFogline
from tests.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.full, pytest.mark.timeout(1200)]

PIPELINE, AFRESH = "carried-state", "carried-afresh"
PATH = f"{API}/pipelines/{PIPELINE}"
RATE = 400
BEFORE = 1000
"""The first Fogline writes at least so many of the averages."""
KEPT = ("days", "turns", "counts", "near")
"""The elements with state: windows, one that runs as one with another, one with a state of each key, a
join."""


def document() -> dict[str, Any]:
    """The averages of a file, which an oracle knows; and of another file all other kinds of state."""
    found = load_template("numbers-average").to_data()
    found["metadata"]["name"] = PIPELINE
    found["spec"]["elements"][0]["params"]["rate"] = RATE
    played = {"path": "demo:wind-turbine", "rate": RATE, "restamp": False, "key": "turbine"}
    mean = {"function": "avg", "column": "power", "as": "mean"}
    count = {"function": "count", "as": "rows"}
    near = {"left_key": "turbine", "right_key": "turbine", "within_s": 1800}

    def element(id: str, type_: str, inputs: dict[str, str], **params: Any) -> dict[str, Any]:
        return {"id": id, "type": type_, "inputs": inputs, "params": params}

    turbines = {"in": "turbines"}
    found["spec"]["elements"] += [
        element("turbines", "csv-replay", {}, **played),
        element("days", "window-aggregate", turbines, size_s=86_400, keys=["turbine"], aggregates=[mean]),
        element("windy", "filter", turbines, condition="wind_speed > 5"),
        element("turns", "running-statistics", {"in": "windy"}, column="power"),
        element("counts", "keyed-aggregate", turbines, keys=["turbine"], aggregates=[count]),
        element("near", "join", {"left": "days", "right": "turbines"}, **near),
    ]
    found["spec"]["groups"] = [{"id": "together", "elements": ["windy", "turns"]}]
    return found


def averages(client: httpx.Client, path: str = PATH) -> list[float]:
    answer = client.get(f"{path}/elements/file/output")
    rows = csv.DictReader(io.StringIO(answer.text)) if answer.is_success else []
    return [float(row["average"]) for row in rows if row.get("average")]


def wait_until_ended(client: httpx.Client, path: str) -> None:
    def left() -> list[str]:
        found = client.get(f"{path}/elements").raise_for_status().json()
        return [each["id"] for each in found if not each["ended"]]

    wait_until(lambda: not left(), lambda: f"the end of {left()}", START_S, look_every_s=LOOK_EVERY_S)


def rows_of(fogline: RunningFogline, deployment: str) -> dict[str, list[Row]]:
    """By element with state."""
    return {id: put_out(fogline.bootstrap, deployment, id) for id in KEPT}


def test_a_pipeline_goes_on_in_another_fogline_as_if_it_had_never_stopped(
    fogline: RunningFogline, client: httpx.Client, tmp_path: Path
) -> None:
    expected = [row["average"] for row in numbers_average.expected()["average"]]
    deployment = deploy(client, document())
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
    drawn = client.get(f"{PATH}/export").raise_for_status().text
    written, before = averages(client), rows_of(fogline, deployment)
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
        afresh = without_state(other, drawn)
        wait_until_ended(other, PATH)
        assert averages(other) == pytest.approx(expected)
        assert averages(client) == written

        # The one without state began again, so it is one that never stopped.
        wait_until_ended(other, f"{API}/pipelines/{AFRESH}")
        assert averages(other, f"{API}/pipelines/{AFRESH}") == pytest.approx(expected)
        after = rows_of(second, other.get(PATH).json()["deployment"])
        whole = rows_of(second, afresh)
    assert before == rows_of(fogline, deployment)
    for id in KEPT:
        assert before[id], f"{id} was carried before it put out a row"
        assert after[id], f"{id} put out nothing after it was carried"
        both = [*before[id], *after[id]]
        if id == "counts":  # a row of each key for each batch, and batches differ
            assert newest(both) == newest(whole[id])
        else:
            assert_same(id, both, whole[id])


def newest(rows: list[Row]) -> dict[str, int]:
    """By turbine, how many rows were counted at last."""
    return {row["turbine"]: row["rows"] for row in rows}


def without_state(client: httpx.Client, text: str) -> str:
    """Deploys the pipeline of an export as YAML under another name; the deployment's id."""
    read = client.post(f"{API}/documents/read", json={"text": text}).raise_for_status().json()
    assert read["missing"] == []
    read["document"]["metadata"]["name"] = AFRESH
    return deploy(client, read["document"])
