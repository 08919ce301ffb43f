"""A group with a user's DataFrame: Spark plans its batches, and Fogline's operators run in them by Arrow."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.integration.runtime.documents import events, out
from tests.integration.runtime.engine import Deployed, Node, create_topic, produce, read_all, values
from tests.waiting import wait_until

pytestmark = pytest.mark.integration

ROWS = [{"k": "ab"[v % 2], "v": v} for v in range(20)]


def derived(id: str, before: str, **expressions: str) -> dict[str, Any]:
    columns = [{"name": name, "expression": expression} for name, expression in expressions.items()]
    return {"id": id, "type": "derive", "inputs": {"in": before}, "params": {"columns": columns}}


def test_elements_before_and_behind_a_dataframe_give_what_they_give_by_themselves(
    kafka: str, node: Node, tmp_path: Path
) -> None:
    topic, outside = create_topic(kafka), create_topic(kafka)
    flags = {"plan_flag": str(tmp_path / "plan"), "row_flag": str(tmp_path / "row")}
    half = derived("half", "events", half="cast(v as number) / 2", ratio="10 / (v - 3)")
    by_half = {
        "id": "by-half",
        "type": "select",
        "inputs": {"in": "half"},
        "params": {"columns": [{"column": name} for name in ("k", "v", "half")], "key": "half"},
    }
    fragile = {"id": "fragile", "type": "fragile", "inputs": {"in": "by-half"}, "params": flags}
    told = derived("told", "fragile", text="k || ' is ' || cast(half as string)")
    elements = [events(topic), half, by_half, fragile, told, out(outside, "told")]
    deployed = Deployed(kafka, elements, {"all": [element["id"] for element in elements]})
    node.own(deployed.specs["all"])
    produce(kafka, topic, [*ROWS, {"k": "a", "v": 666}])
    wanted = [{**row, "half": row["v"] / 2} for row in ROWS if row["v"] != 3]
    wanted = [{**row, "text": f"{row['k']} is {row['half']}"} for row in wanted]
    wait_until(lambda: len(values(kafka, outside)) == len(wanted), "the rows")
    assert values(kafka, outside) == wanted
    assert [record.key for record in read_all(kafka, outside)] == [
        str(row["half"]).encode() for row in wanted
    ]
    wait_until(lambda: deployed.dead_letters("fragile"), "the letter of the last row")
    [of_zero], [of_666] = deployed.dead_letters("half"), deployed.dead_letters("fragile")
    times = {json.loads(record.value)["v"]: record.timestamp for record in read_all(kafka, topic)}
    assert (of_zero["key"], of_zero["time_ms"]) == ("b", times[3])
    assert (of_666["key"], of_666["time_ms"]) == ("333.0", times[666])


def test_a_processor_before_a_dataframe_keeps_its_state(kafka: str, node: Node, tmp_path: Path) -> None:
    topic, outside = create_topic(kafka), create_topic(kafka)
    flags = {"plan_flag": str(tmp_path / "plan"), "row_flag": str(tmp_path / "row")}
    sums = {"id": "sums", "type": "picky", "inputs": {"in": "events"}, "params": {}}
    fragile = {"id": "fragile", "type": "fragile", "inputs": {"in": "sums"}, "params": flags}
    twice = derived("twice", "fragile", twice="v * 2")
    elements = [events(topic), sums, fragile, twice, out(outside, "twice")]
    deployed = Deployed(kafka, elements, {"all": [element["id"] for element in elements]})
    spec = deployed.specs["all"]
    replica = node.own(spec)
    totals = {"a": 0, "b": 0}
    wanted = []
    for part in (ROWS[:7], ROWS[7:]):
        produce(kafka, topic, part)
        for row in part:
            totals[row["k"]] += row["v"]
            wanted.append({"k": row["k"], "v": totals[row["k"]], "twice": 2 * totals[row["k"]]})
        wait_until(lambda: len(values(kafka, outside)) == len(wanted), "the rows")
    by_key = [[row for row in found if row["k"] == "a"] for found in (values(kafka, outside), wanted)]
    assert by_key[0] == by_key[1]
    assert replica.status().error is None
