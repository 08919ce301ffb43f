"""A standby's state equals its owner's at each seq that it reports: every stateful operator, both modes, and
across an upgrade."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from pipeline_runtime.checkpoint.keyed_state import KeyedState
from pipeline_runtime.model.desired import ClaimOrder, Role
from pipeline_runtime.model.ids import Epoch
from pipeline_runtime.model.spec import Follow, GroupSpec
from pipeline_runtime.operators.registry import default_registry
from pipeline_runtime.replica.local_state import keyed_path, last_committed, spark_directory
from pipeline_runtime.replica.measures import Measures
from pipeline_runtime.replica.replica import Replica
from tests.chosen import chosen
from tests.directing import tell
from tests.integration.runtime.copying import copy_state
from tests.integration.runtime.documents import COLUMNS
from tests.integration.runtime.engine import (
    STOP_S,
    Deployed,
    Element,
    Node,
    create_topic,
    owning,
    produce,
    wait_for_status,
)

pytestmark = pytest.mark.integration

SUMS = [{"function": "sum", "column": "i", "as": "total"}, {"function": "count", "as": "n"}]
# With numbers that are no integers, the order of addition shows in the last digits.
AVERAGES = [
    {"function": "avg", "column": "v", "as": "average"},
    {"function": "stddev", "column": "v", "as": "deviation"},
]
START_MS = 1_700_000_000_000
ROWS_PER_WAVE = 60
OF_SPARK = "spark-pairs"  # of a user's package
BEHIND = 4  # batches that the standby has to follow at once


@dataclass(frozen=True)
class Case:
    type: str
    params: dict[str, Any]
    follow: Follow
    # How Spark's state source is told what to read: once for each of these. It is None when the replica keeps
    # the state.
    variables: list[dict[str, str]] | None = None
    inputs: tuple[str, ...] = ("in",)

    def __str__(self) -> str:
        return f"{self.type}-{self.follow}"


CASES = [
    Case("window-aggregate", {"size_s": 2, "delay_s": 1, "keys": ["k"], "aggregates": AVERAGES}, "exact"),
    Case("keyed-aggregate", {"keys": ["k"], "aggregates": AVERAGES}, "exact"),
    Case("keyed-aggregate", {"keys": ["k"], "aggregates": SUMS}, "coalesced"),
    Case("keyed-aggregate", {"keys": ["k"], "aggregates": SUMS}, "exact"),
    Case("count-window-aggregate", {"size": 7, "aggregates": AVERAGES}, "coalesced"),
    Case("count-window-aggregate", {"size": 7, "aggregates": AVERAGES}, "exact"),
    Case("running-statistics", {"column": "v", "every_s": 3}, "coalesced"),
    Case("running-statistics", {"column": "v", "every_s": 3}, "exact"),
    *(
        Case(type_, params, "coalesced")
        for type_, params in {
            "edge-detection": {"columns": ["b"]},
            "time-between": {"column": "b", "first": "true", "second": "false", "delay_s": 1},
            "difference": {"column": "v"},
            "last-values": {"column": "v", "size": 4, "every": 3},
            "baseline-change": {"column": "v", "window_s": 2},
            "trend": {"column": "v", "window_s": 2},
            "record-around": {"event": "b", "before_s": 1, "after_s": 1},
            "deduplicate": {"columns": ["b"], "within_s": 1},
            "frequency-filter": {"column": "v", "sample_rate_hz": 20, "high_cutoff_hz": 2},
            "peak-detection": {"column": "v", "height": 50, "also": ["b"]},
            "hysteresis-alarm": {"column": "v", "raise_at": 100, "clear_at": 50},
        }.items()
    ),
    Case("silence-alarm", {"for_s": 60, "key": "k"}, "exact"),
    Case(
        "record-around-events",
        {"event": "b", "before_s": 1, "after_s": 1},
        "exact",
        inputs=("in", "events"),
    ),
    Case(
        "join",
        {"left_key": "k", "right_key": "k", "within_s": 1, "delay_s": 1},
        "exact",
        inputs=("left", "right"),
    ),
    Case(
        OF_SPARK,
        {"within_s": 1},
        "exact",
        variables=[{"joinSide": "left"}, {"joinSide": "right"}],
        inputs=("left", "right"),
    ),
]

# By Fogline and by Spark. The others differ in what they compute, and each operator's own tests cut its rows
# into batches in every way.
OFTEN = ("window-aggregate-exact", f"{OF_SPARK}-exact")
ALWAYS = [case for case in CASES if str(case) in OFTEN]


def test_all_stateful_operators_are_among_the_cases() -> None:
    library = [item for item in default_registry().all() if item.__module__.startswith("pipeline_runtime.")]
    assert {case.type for case in CASES} == {OF_SPARK, *(item.type for item in library if item.stateful)}


def exported(session: SparkSession, directory: Path, case: Case) -> list[Counter[str]]:
    """The content of each of the operator's states as it is on disk."""
    if case.variables is None:
        state = KeyedState(keyed_path(directory), read_only=True)
        try:
            return [Counter(map(str, [*state.items(), *state.get([None])]))]
        finally:
            state.close()
    found = []
    for variable in case.variables:
        reader = session.read.format("statestore").option("path", str(spark_directory(directory)))
        rows = reader.options(**variable).load().collect()
        found.append(Counter(str(row.asDict(recursive=True)) for row in rows))
    return found


class Waves:
    """Input in pieces: the owner makes a batch or more of each."""

    def __init__(self, kafka: str, topics: list[str]) -> None:
        self._kafka = kafka
        self._topics = topics
        self._sent = 0

    @property
    def rows(self) -> int:
        return self._sent * len(self._topics)

    def send(self, owner: Replica) -> None:
        # Who has not read its own disk yet is at 0, and coming from there is no processing.
        before = owning(owner).seq
        assert owner.status().error is None
        numbers = range(self._sent, self._sent + ROWS_PER_WAVE)
        self._sent += ROWS_PER_WAVE
        for shift, topic in enumerate(self._topics):
            rows = [
                {"k": f"k{n % 5}", "v": n * 7919 % 1000 / 7 + shift, "i": n, "b": n % 3 == 0} for n in numbers
            ]
            times = iter([START_MS + n * 50 for n in numbers])
            produce(self._kafka, topic, rows, key=lambda row: row["k"], time_ms=lambda _, at=times: next(at))
        wait_for_status(owner, lambda status: status.seq > before, "to process a wave")


def deploy(kafka: str, case: Case, topics: list[str]) -> tuple[Deployed, GroupSpec]:
    types = {"v": "number", "i": "integer", "b": "boolean"}
    columns = [COLUMNS[0], *({"name": name, "type": type_} for name, type_ in types.items())]
    sources: list[Element] = [
        {
            "id": f"source-{port}",
            "type": "kafka-in",
            "params": {"topic": topic, "columns": columns, "key": "k"},
        }
        for port, topic in zip(case.inputs, topics, strict=True)
    ]
    inputs = {port: f"source-{port}" for port in case.inputs}
    element: Element = {"id": "state", "type": case.type, "inputs": inputs, "params": case.params}
    members = [item["id"] for item in [*sources, element]]
    deployed = Deployed(kafka, [*sources, element], {"all": members})
    spec = deployed.specs["all"]
    # A group that reads a user's topic follows exactly, since what is far ahead goes by the batch's time.
    # Here nothing is ahead, so the operator may follow as it could alone.
    assert spec.follow in ("exact", "coalesced")
    spec = spec.model_copy(update={"follow": case.follow})
    deployed.specs["all"] = spec
    return deployed, spec


@pytest.mark.parametrize("case", chosen(CASES, ALWAYS), ids=str)
def test_a_standby_has_the_owners_state(
    kafka: str,
    node: Node,
    other_node: Node,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    case: Case,
) -> None:
    topics = [create_topic(kafka) for _ in case.inputs]
    deployed, spec = deploy(kafka, case, topics)
    waves = Waves(kafka, topics)
    owner = node.own(spec)
    for _ in range(3):
        waves.send(owner)
    copied = copy_state(spec, node, other_node, tmp_path)
    while owner.status().seq < copied + BEHIND:
        waves.send(owner)
    counted = batches_counted(monkeypatch)
    standby = other_node.start(spec)

    for round_ in range(2):
        for _ in range(2):
            waves.send(owner)
        wait_for_status(owner, lambda status: status.rows_in_total == waves.rows, "to process all")
        tell(owner, paused_since_ms=0)
        assert_same_state(node, owner, other_node, standby, case)
        if round_ == 0:
            tell(owner, paused_since_ms=None)
    batches = counted[id(standby._state.measures)]
    if case.follow == "exact":
        assert batches == owner.status().seq - copied
    else:
        assert 0 < batches < owner.status().seq - copied, "the standby has taken no two batches at once"
    deployed.assert_journal_lawful("all")


@pytest.mark.parametrize("follow", chosen(["exact", "coalesced"], ["exact"]))
def test_what_lies_before_an_upgrade_is_followed_as_it_was_processed(
    kafka: str, node: Node, other_node: Node, tmp_path: Path, follow: Follow
) -> None:
    """From a checkpoint of before: some batches of the former definition, then those of the new one."""
    # Statistics that restart with each report, and later do not: the state shows which definition processed
    # what.
    case = Case("running-statistics", {"column": "v", "every_s": 1, "reset": True}, follow)
    topics = [create_topic(kafka)]
    deployed, former = deploy(kafka, case, topics)
    waves = Waves(kafka, topics)
    owner = node.own(former)
    for _ in range(2):
        waves.send(owner)
    copied = copy_state(former, node, other_node, tmp_path)
    while owner.status().seq < copied + BEHIND:
        waves.send(owner)
    owner.stop(STOP_S)
    spec = upgraded(former, {"column": "v", "every_s": 1, "reset": False})
    owner = node.own(spec, over=1)
    for _ in range(2):
        waves.send(owner)
    tell(owner, paused_since_ms=0)

    standby = other_node.start(spec)

    assert_same_state(node, owner, other_node, standby, case)
    # And it goes on from there with the new definition alone.
    tell(owner, paused_since_ms=None)
    owner.stop(STOP_S)
    tell(standby, order=ClaimOrder(id="take over", over=Epoch(2)))
    owning(standby)
    waves.send(standby)
    versions = [commit.definition for commit in deployed.commits("all")]
    assert versions == sorted(versions, key=[former.version, spec.version].index)
    assert standby.status().error is None
    deployed.assert_journal_lawful("all")


def test_two_upgrades_behind_a_checkpoint_are_followed_as_they_were_processed(
    kafka: str, node: Node, other_node: Node, tmp_path: Path
) -> None:
    """The checkpoint has the first definition, who starts from it the third: the second is in its CLAIM."""
    case = Case("running-statistics", {"column": "v", "every_s": 1, "reset": True}, "exact")
    topics = [create_topic(kafka)]
    deployed, former = deploy(kafka, case, topics)
    waves = Waves(kafka, topics)
    owner = node.own(former)
    for _ in range(2):
        waves.send(owner)
    copied = copy_state(former, node, other_node, tmp_path)
    while owner.status().seq < copied + BEHIND:
        waves.send(owner)
    specs = [former]
    for reset in (False, True):
        owner.stop(STOP_S)
        specs.append(upgraded(specs[-1], {"column": "v", "every_s": 1, "reset": reset}))
        owner = node.own(specs[-1], over=len(specs) - 1)
        for _ in range(2):
            waves.send(owner)
    tell(owner, paused_since_ms=0)

    standby = other_node.start(specs[-1])

    assert_same_state(node, owner, other_node, standby, case)
    assert standby.status().error is None
    assert [claim.definition for claim in deployed.claims("all")] == [spec.version for spec in specs]
    deployed.assert_journal_lawful("all")


def test_who_is_told_to_own_before_it_has_come_to_its_definition_claims_and_changes_it(
    kafka: str, node: Node, other_node: Node, tmp_path: Path
) -> None:
    """The owner has not heard of the upgrade, and goes on with the former definition until it is fenced."""
    case = Case("running-statistics", {"column": "v", "every_s": 1, "reset": True}, "exact")
    topics = [create_topic(kafka)]
    deployed, former = deploy(kafka, case, topics)
    waves = Waves(kafka, topics)
    owner = node.own(former)
    for _ in range(2):
        waves.send(owner)
    copied = copy_state(former, node, other_node, tmp_path)
    while owner.status().seq < copied + BEHIND:
        waves.send(owner)
    spec = upgraded(former, {"column": "v", "every_s": 1, "reset": False})
    standby = other_node.start(spec)
    wait_for_status(standby, lambda status: status.seq == owner.status().seq, "to follow the former one")

    tell(standby, order=ClaimOrder(id="take over", over=Epoch(1)))

    wait_for_status(standby, lambda status: status.role is Role.OWNER and status.epoch == 3, "to own again")
    waves.send(standby)
    assert [claim.definition for claim in deployed.claims("all")] == [former.version, *[spec.version] * 2]
    versions = [commit.definition for commit in deployed.commits("all")]
    assert versions == sorted(versions, key=[former.version, spec.version].index)
    assert versions[-1] == spec.version
    wait_for_status(owner, lambda status: status.role is Role.STOPPED, "to notice that it was replaced")
    deployed.assert_journal_lawful("all")


def upgraded(spec: GroupSpec, params: dict[str, Any]) -> GroupSpec:
    """With other parameters of `state`."""
    elements = tuple(
        element.model_copy(update={"params": params}) if element.id == "state" else element
        for element in spec.elements
    )
    return spec.model_copy(update={"elements": elements, "version": f"{spec.version}-upgraded"})


def assert_same_state(node: Node, owner: Replica, other: Node, standby: Replica, case: Case) -> None:
    """The owner has nothing to do: both come to the same seq, and their files say the same."""
    spec = owner.spec

    def settled(status: Any) -> bool:
        if owner.status().at_work:
            return False  # a batch that was granted before the pause is still to be committed
        mine = last_committed(node.replica_directory(spec))
        theirs = last_committed(other.replica_directory(spec))
        return mine is not None and mine.seq == owner.status().seq and mine == theirs

    wait_for_status(standby, settled, "to be where its owner is")
    session = node.host.engine.session
    mine = exported(session, node.replica_directory(spec), case)
    theirs = exported(session, other.replica_directory(spec), case)
    assert sum(content.total() for content in mine) > 0
    assert mine == theirs
    assert settled(None), "one of them went on while its state was read"


def batches_counted(monkeypatch: pytest.MonkeyPatch) -> Counter[int]:
    """From now on the batches of each replica, by the id of its measures."""
    counted, batch = Counter[int](), Measures.batch

    def counting(measures: Measures, *told: Any) -> None:
        counted[id(measures)] += 1
        batch(measures, *told)

    monkeypatch.setattr(Measures, "batch", counting)
    return counted
