"""An operator that fails stops its element, says why, and goes on once the cause is gone."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline_runtime.model.desired import Role
from tests.integration.runtime.documents import events
from tests.integration.runtime.engine import (
    Deployed,
    Node,
    create_topic,
    produce,
    wait_for_status,
)
from tests.waiting import wait_until

pytestmark = pytest.mark.integration


def test_what_an_operator_raises_stops_its_element_and_keeps_what_is_committed(
    kafka: str, node: Node, tmp_path: Path
) -> None:
    plan_flag, row_flag = tmp_path / "plan", tmp_path / "row"
    topic = create_topic(kafka)
    params = {"plan_flag": str(plan_flag), "row_flag": str(row_flag)}
    fragile = {"id": "fragile", "type": "fragile", "inputs": {"in": "events"}, "params": params}
    deployed = Deployed(kafka, [events(topic), fragile], {"all": ["events", "fragile"]})
    spec = deployed.specs["all"]

    plan_flag.touch()
    status = wait_for_status(node.own(spec), lambda status: status.phase == "failed", "to fail")
    assert status.role is Role.STOPPED
    assert status.error is not None
    assert "the plan cannot be made today" in status.error.message
    assert status.error.traceback is not None
    assert "LookupError" in status.error.traceback

    plan_flag.unlink()
    epoch = len(deployed.claims("all"))
    replica = node.own(spec, over=epoch)
    produce(kafka, topic, [{"k": "a", "v": v} for v in range(13)])
    wait_until(lambda: len(deployed.records("fragile")) == 13, "the first rows")

    row_flag.touch()
    produce(kafka, topic, [{"k": "a", "v": v} for v in range(13, 20)])
    status = wait_for_status(replica, lambda status: status.phase == "failed", "to fail")
    assert status.role is Role.STOPPED
    assert status.error is not None
    assert status.error.message == "ArithmeticError: 13 is more than I can bear"
    assert status.error.traceback is not None
    assert "in check" in status.error.traceback
    assert [row["v"] for row in deployed.records("fragile")] == list(range(13))

    row_flag.unlink()
    node.own(spec, over=epoch + 1)
    wait_until(lambda: len(deployed.records("fragile")) == 20, "the rest")
    assert [row["v"] for row in deployed.records("fragile")] == list(range(20))
    deployed.assert_journal_lawful("all")
