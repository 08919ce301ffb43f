"""In which order the groups of an undeployment end, and what the later ones read before."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pipeline_runtime.model.schema import StreamSchema
from pipeline_runtime.model.spec import GroupSpec, InputStream, OutputStream
from tests.unit.workers.operations import (
    AWAY,
    DEADLINE,
    FAILING,
    OWNS,
    T0,
    enters,
    undeploy,
    undeploying,
)
from workers.control.operations.deliveries import not_delivered
from workers.control.operations.draining import READ_MS, next_to_end
from workers.control.operations.limits import ERROR_MS_MAX
from workers.control.operations.model import (
    Answer,
    Enter,
    Observed,
    Progress,
    ReadPositions,
    Step,
    Undelivered,
    Wait,
)
from workers.control.operations.phases import OperationPhase as P
from workers.control.operations.steps import next_step

NO_FIELDS = StreamSchema(fields=())
READS = replace(undeploy(P.READ), later=("power",), delivers=True)
ENTERS_READ = Enter(P.READ, T0 + READ_MS)
BEHIND = Undelivered("power", "Power", "power", rows=1200, estimated=True, unread=True)
TAKES_IN = replace(OWNS, takes_in="edge-b")  # which had the group before
INGESTS = Wait("Power on edge-b to take in nothing more", outdated=True)
FAILS = {"power": T0 - ERROR_MS_MAX}
WAITS = replace(OWNS, error="the schema registry does not answer")  # and goes on behind it


def spec(group: str, *reads: str, external: bool = False) -> GroupSpec:
    """Writes a topic of its own name."""
    return GroupSpec(
        deployment="d",
        pipeline="p",
        group=group,
        elements=(),
        inputs=tuple(
            InputStream(
                source=f"{topic}.out", topic=topic, data_schema=NO_FIELDS, consumer=group, external=external
            )
            for topic in reads
        ),
        outputs=(OutputStream(source=f"{group}.out", topic=group, data_schema=NO_FIELDS),),
    )


def test_a_group_ends_when_nobody_writes_for_it_any_more() -> None:
    specs = [spec("out", "mean", "raw"), spec("mean", "raw"), spec("raw"), spec("other")]
    assert next_to_end(specs, ["mean", "other", "out", "raw"]) == ("raw", "other")
    assert next_to_end(specs, ["mean", "out"]) == ("mean",)
    assert next_to_end(specs, ["out"]) == ("out",)
    assert next_to_end(specs, []) == ()


def test_groups_that_read_from_each_other_end_together_and_users_topics_give_no_order() -> None:
    assert next_to_end([spec("a", "b"), spec("b", "a")], ["a", "b"]) == ("a", "b")
    assert next_to_end([spec("a"), spec("b", "a", external=True)], ["a", "b"]) == ("a", "b")


def left(*counts: Undelivered, at_ms: int = T0) -> Answer:
    return Answer(at_ms, undelivered=counts)


@pytest.mark.parametrize(
    ("progress", "seen", "step"),
    [
        (replace(READS, phase=P.SETTLE), undeploying(), ENTERS_READ),
        (replace(READS, phase=P.RETIRE), undeploying(replace(OWNS, ends=False)), ENTERS_READ),
        (replace(READS, phase=P.RETIRE), undeploying(OWNS), Wait("Power on edge-a to end")),
        (replace(READS, phase=P.RETIRE), undeploying(WAITS), Wait("Power on edge-a to end")),
        (replace(READS, phase=P.RETIRE, later=()), undeploying(FAILING), enters(P.DELIVER)),
        (READS, undeploying(TAKES_IN), INGESTS),
        (READS, undeploying(TAKES_IN, kafka=left()), INGESTS),
        (READS, undeploying(OWNS), ReadPositions()),
        (READS, undeploying(OWNS, kafka=left(BEHIND)), Wait("Power to read about 1,200 rows")),
        (READS, undeploying(OWNS, kafka=left(BEHIND, at_ms=0)), ReadPositions()),
        (READS, undeploying(OWNS, kafka=left()), enters(P.RETIRE)),
        (READS, undeploying(OWNS, kafka=AWAY), Wait(f"Kafka to say what is not read: {AWAY.away}")),
        (replace(READS, hurries=True), undeploying(TAKES_IN), enters(P.RETIRE)),
        # its node starts it again
        (replace(READS, failing={"power": T0}), undeploying(FAILING), ReadPositions()),
        (READS, undeploying(WAITS, kafka=left(BEHIND)), Wait("Power to read about 1,200 rows")),
        # these read nothing any more, whatever waits for them
        (replace(READS, failing=FAILS), undeploying(FAILING), enters(P.RETIRE)),
        (READS, undeploying(replace(TAKES_IN, paused=True)), enters(P.RETIRE)),
    ],
)
def test_what_was_put_out_is_read_before_its_readers_end(
    progress: Progress, seen: Observed, step: Step
) -> None:
    assert next_step(progress, seen, T0) == step


@pytest.mark.parametrize(
    "seen",
    [
        undeploying(replace(OWNS, node_up=False), kafka=left(BEHIND)),
        undeploying(TAKES_IN),
        undeploying(WAITS, kafka=left(BEHIND)),
        undeploying(OWNS, kafka=AWAY),
    ],
)
def test_nobody_is_waited_for_without_end(seen: Observed) -> None:
    assert not isinstance(next_step(READS, seen, DEADLINE - 1), Enter)
    late_ms = DEADLINE + 90_000
    assert next_step(READS, seen, late_ms) == enters(P.RETIRE, late_ms)


def test_what_was_not_read_is_said() -> None:
    assert not_delivered([BEHIND]) == " Not read any more: about 1,200 rows of Power."
    unknown = [replace(BEHIND, rows=None, topic=topic) for topic in ("fl.d.raw.out", "fl.d.mean.out")]
    assert not_delivered(unknown) == (
        " Kafka did not say how many rows of Power were not read. These streams are kept in Kafka: "
        "fl.d.raw.out, fl.d.mean.out. Delete them there when nobody needs them."
    )
