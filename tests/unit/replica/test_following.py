"""What a replica takes of what is read of its journal."""

from __future__ import annotations

from pathlib import Path

from pipeline_runtime.journal.records import Boundary, Commit
from pipeline_runtime.journal.view import JournalView
from pipeline_runtime.kafka.clients import KafkaSettings
from pipeline_runtime.model.ids import Epoch, Seq
from pipeline_runtime.model.spec import ElementSpec, GroupSpec
from pipeline_runtime.replica.following import JournalFollower
from pipeline_runtime.replica.state import ReplicaState

SPEC = GroupSpec(deployment="d", pipeline="p", group="g", elements=(ElementSpec(id="g", type="filter"),))


def test_what_a_tail_that_was_closed_still_reads_is_not_taken(tmp_path: Path) -> None:
    state = ReplicaState()
    follower = JournalFollower(SPEC, KafkaSettings("127.0.0.1:9"), tmp_path, state)
    former, state.view = state.view, JournalView()
    commit = (7, 0, Commit(Epoch(1), Boundary(Seq(1), {}, 0)))
    follower._apply_records(former, [commit])
    assert (state.view.last_seq, state.journal_offset) == (0, 0)
    # The same record once more, by the tail that counts.
    follower._apply_records(state.view, [commit])
    assert (state.view.last_seq, state.journal_offset) == (1, 8)
