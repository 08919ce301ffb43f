"""Two replicas claim at the same time, and the one that comes first rewinds, or has another definition."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline_runtime.journal.records import Boundary, Claim, Commit
from pipeline_runtime.kafka.clients import KafkaSettings
from pipeline_runtime.model.desired import ClaimOrder
from pipeline_runtime.model.ids import Epoch, Seq
from pipeline_runtime.model.spec import GroupSpec
from pipeline_runtime.replica.core import needs_another_definition
from pipeline_runtime.replica.errors import RewindUndone, explain
from pipeline_runtime.replica.host import ReplicaHost
from pipeline_runtime.replica.local_state import LocalStateDamaged
from pipeline_runtime.replica.replica import Replica
from tests.permits import unused_permit

SPEC = GroupSpec(deployment="d", pipeline="p", group="g", elements=())


@pytest.fixture
def replica(tmp_path: Path) -> Replica:
    """One whose journal has three batches."""
    host = ReplicaHost("b", tmp_path, KafkaSettings("none:1"), lambda: None, lambda name: tmp_path / name)
    made = Replica(SPEC, tmp_path, host)
    made._state.view.apply(Claim(Epoch(1), "o", "a", {"in-0": 0}))
    for seq in (1, 2, 3):
        made._state.view.apply(Commit(Epoch(1), Boundary(Seq(seq), {"in-0": seq}, seq)))
    return made


def test_what_a_claim_would_go_on_from_must_not_have_been_rewound_meanwhile(replica: Replica) -> None:
    state = replica._state
    state.local = Seq(3)
    assert replica._start_ends({}) == {"in-0": 0}
    state.view.apply(Claim(Epoch(2), "rewind", "a", rewind=Seq(1)))
    with pytest.raises(LocalStateDamaged, match="at batch 3, which a rewind has undone"):
        replica._start_ends({})


@pytest.mark.parametrize("local", [1, 2], ids=["it follows up to there", "it is there"])
def test_who_is_to_rewind_to_what_another_rewind_has_undone_says_so(replica: Replica, local: int) -> None:
    state = replica._state
    state.local = Seq(local)
    state.order = ClaimOrder(id="another rewind", over=Epoch(1), rewind=Seq(2))
    assert replica._start_ends({}) == {"in-0": 0}
    state.view.apply(Claim(Epoch(2), "rewind", "a", rewind=Seq(1)))
    with pytest.raises(RewindUndone, match="cannot go back to batch 2, because another rewind") as raised:
        replica._start_ends({})
    assert "another checkpoint" in explain(raised.value, "", 0).next


def test_an_owner_claims_anew_where_the_journal_gives_it_another_definition_and_nowhere_else(
    replica: Replica,
) -> None:
    state = replica._state
    state.permit = unused_permit(2)
    assert not needs_another_definition(state.facts(SPEC)), "its own CLAIM is not read yet"
    state.view.apply(Claim(Epoch(2), "order", "b", definition="a former one"))
    assert needs_another_definition(state.facts(SPEC))
    state.view.apply(Claim(Epoch(3), "another order", "a", definition="a later one"))
    assert not needs_another_definition(state.facts(SPEC)), "it gives way instead"


def test_an_owner_claims_anew_when_the_one_before_has_committed_once_more_by_a_former_definition(
    replica: Replica,
) -> None:
    """After it had come to the journal's end, and before its own CLAIM was committed."""
    state = replica._state
    state.local, state.permit = Seq(3), unused_permit(2)
    late = Commit(Epoch(1), Boundary(Seq(4), {"in-0": 4}, 4), definition="a former one")
    for record in (late, Claim(Epoch(2), "order", "b", definition=SPEC.version)):
        state.view.apply(record)
    assert needs_another_definition(state.facts(SPEC))
