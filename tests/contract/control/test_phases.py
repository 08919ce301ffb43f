"""No phase is entered that the tables do not allow."""

from __future__ import annotations

import pytest

from pipeline_runtime.handover import phases as handover
from pipeline_runtime.handover.phases import Phase, Strategy
from webapp.handovers.models import Handover
from webapp.operations.models import Operation
from workers.control.handovers import effects
from workers.control.operations import phases as operation, record
from workers.control.operations.phases import Kind, OperationPhase
from workers.control.phases import PhaseOutOfTurn


@pytest.mark.parametrize("strategy", Strategy)
def test_a_handover_enters_what_may_follow_and_nothing_else(strategy: Strategy) -> None:
    for present in Phase:
        allowed = handover.NEXT[strategy].get(present, {})
        for following in Phase:
            row = Handover(strategy=strategy.value, phase=present.value)
            if following in allowed:
                effects.enter(row, following, "why")
                assert (row.phase, [entry["phase"] for entry in row.timeline]) == (following, [following])
            else:
                with pytest.raises(PhaseOutOfTurn, match=f"^{following} may not follow {present}\\."):
                    effects.enter(row, following)
                assert (row.phase, row.timeline) == (present, [])


@pytest.mark.parametrize("kind", operation.NEXT)
def test_an_operation_enters_what_may_follow_and_nothing_else(kind: Kind) -> None:
    for present in OperationPhase:
        allowed = operation.NEXT[kind].get(present, {})
        for following in OperationPhase:
            row = Operation(kind=kind, phase=present.value)
            if following in allowed:
                record.enter(row, following, None, ())
                assert row.phase == following
            else:
                with pytest.raises(PhaseOutOfTurn, match=f"^{following} may not follow {present}\\."):
                    record.enter(row, following, None, ())
                assert row.phase == present


@pytest.mark.parametrize("kind", operation.NEXT)
def test_an_operation_is_done_only_after_its_last_phases(kind: Kind) -> None:
    for phase in OperationPhase:
        row = Operation(kind=kind, phase=phase.value)
        if phase in operation.DONE_AFTER[kind]:
            record.check_done(row)
        else:
            with pytest.raises(PhaseOutOfTurn, match=f"not done after {phase}"):
                record.check_done(row)
