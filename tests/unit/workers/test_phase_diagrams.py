"""The drawings of phases in docs and docstrings are those of the tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from workers.control.operations.phases import OperationPhase as P
from workers.control.phase_diagrams import drawn, list_of, operation_diagram


@pytest.mark.parametrize(("path", "text"), [*drawn()], ids=lambda value: getattr(value, "name", ""))
def test_a_file_has_the_drawings_of_the_tables(path: Path, text: str) -> None:
    assert path.read_text(encoding="utf-8") == text, "run `make reference`"


def test_a_diagram_has_an_arrow_for_each_phase_that_may_follow_and_for_each_end() -> None:
    assert operation_diagram("undeploy").splitlines() == [
        "```mermaid",
        "stateDiagram-v2",
        "  PENDING --> SETTLE: control takes it up",
        "  SETTLE --> READ: nothing else is under way, and some groups have deliverers",
        "  SETTLE --> RETIRE: nothing else is under way, and no group has a deliverer",
        "  READ --> RETIRE: the groups that end next have read all",
        "  RETIRE --> DELIVER: the groups have ended, and some have deliverers",
        "  RETIRE --> READ: others read what these have put out",
        "  RETIRE --> STOP: the groups have ended, and none has a deliverer",
        "  DELIVER --> STOP: their rows are delivered",
        "  STOP --> DELETE: nothing of it runs",
        "  DELETE --> [*]: done",
        "```",
    ]
    assert "  DELETE --> [*]: failed" in operation_diagram("deploy").splitlines()


def test_a_list_has_the_whole_way_first_and_then_what_else_may_follow() -> None:
    ways = {P.PENDING: {P.PLACE: "", P.STOP: ""}, P.PLACE: {P.RUN: "", P.STOP: ""}, P.RUN: {P.STOP: ""}}
    assert list_of({"deploy": ways}, {"deploy": P.RUN}).splitlines() == [
        "    deploy  PENDING -> PLACE -> RUN -> done",
        "            PENDING -> STOP",
        "            PLACE -> STOP",
        "            RUN -> STOP",
    ]
