"""The table that control, web and browser share."""

from __future__ import annotations

import json
from pathlib import Path

from pipeline_runtime.handover import phases
from pipeline_runtime.handover.phases import BEFORE_CUT, NEXT, PASSING, PHASES, Phase, Strategy

TABLE = json.loads(Path(phases.__file__).with_suffix(".json").read_text())


def test_the_table_has_each_strategy_and_each_phase() -> None:
    assert list(PHASES) == list(Strategy)
    assert list(TABLE["titles"]) == list(Phase)
    assert {phase for way in PHASES.values() for phase in way} == set(Phase)


def test_each_strategy_waits_first_passes_once_and_finishes() -> None:
    for way in PHASES.values():
        assert (way[0], way[-1]) == (Phase.PENDING, Phase.FINISH)
        assert len([phase for phase in way if phase in PASSING]) == 1


def test_the_phases_of_a_strategy_are_its_usual_way_through_the_table() -> None:
    for strategy, way in PHASES.items():
        usual = [way[0]]
        while usual[-1] in NEXT[strategy]:
            usual.append(next(iter(NEXT[strategy][usual[-1]])))
        assert tuple(usual) == way


def test_each_arrow_has_its_reason_and_no_phase_is_out_of_reach() -> None:
    for ways in NEXT.values():
        assert all(when for following in ways.values() for when in following.values())
        reached = {Phase.PENDING} | {after for following in ways.values() for after in following}
        assert set(ways) <= reached


def test_nothing_leads_back_from_where_ownership_passes() -> None:
    for ways in NEXT.values():
        for phase in (*PASSING, Phase.FINISH):
            assert not set(ways.get(phase, {})) & set(BEFORE_CUT)


def test_a_handover_can_be_cancelled_until_ownership_passes() -> None:
    assert BEFORE_CUT == (Phase.PENDING, Phase.PREPARE, Phase.WARM, Phase.STOP, Phase.COPY)


def test_only_a_restoration_does_without_its_origin() -> None:
    assert [way for way in Strategy if way.restores] == [
        Strategy.HOT_STANDBY,
        Strategy.CHECKPOINT,
        Strategy.REWIND,
    ]
