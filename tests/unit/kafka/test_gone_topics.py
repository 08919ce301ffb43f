"""Tests the log about missing topics: it leaves out messages about topics that Fogline has deleted."""

from __future__ import annotations

import inspect
import logging

import kafka.cluster
import pytest
from kafka.errors import Cancelled, NodeNotReadyError

from pipeline_runtime.kafka.gone_topics import LOGGER, NOT_ASKED, NOT_FOUND, GoneTopics
from pipeline_runtime.model.desired import DesiredReplica, NodeDesired, Role
from pipeline_runtime.model.ids import released_topic
from pipeline_runtime.model.schema import StreamSchema
from pipeline_runtime.model.spec import ElementSpec, GroupSpec, InputStream
from workers.node.agent import topics_wanted

WANTED = frozenset({"fl.d.power.out"})


@pytest.mark.parametrize(
    ("message", "about", "is_said"),
    [
        (NOT_FOUND, "fl.d.power.out", True),  # it is lost: a group that is wanted here reads or writes it
        (NOT_FOUND, "fl.gone.power.journal", False),
        (NOT_FOUND, "readings", True),  # a user's topic
        (NOT_ASKED, Cancelled(), False),
        (NOT_ASKED, NodeNotReadyError("metadata"), True),
        ("Topic %s is not authorized for this client", "fl.gone.power.out", True),
    ],
)
def test_only_topics_that_nobody_wants_are_left_out(message: str, about: object, is_said: bool) -> None:
    record = logging.LogRecord(LOGGER, logging.ERROR, "", 0, message, (about,), None)
    assert GoneTopics(lambda: WANTED).filter(record) is is_said


def replica(group: str, role: Role = Role.OWNER, *, retire: bool = False) -> DesiredReplica:
    schema = StreamSchema(fields=())
    spec = GroupSpec(
        deployment="d",
        pipeline="p",
        group=group,
        elements=(ElementSpec(id=group, type="filter"),),
        inputs=(InputStream(source="a.out", topic="fl.d.a.out", data_schema=schema, consumer=group),),
    )
    return DesiredReplica(spec=spec, role=role, retire=retire)


def test_what_retires_or_stops_needs_its_topics_no_more_and_its_readers_do() -> None:
    going = replica("a", retire=True), replica("b", Role.STOPPED)
    assert topics_wanted(NodeDesired(node="n", revision=1, replicas=going)) == frozenset()
    stays = topics_wanted(NodeDesired(node="n", revision=2, replicas=(*going, replica("c", Role.STANDBY))))
    assert stays == {"fl.d.a.out", "fl.d.c.journal", released_topic("d", "c"), "fl.d.c.dead"}


def test_kafka_python_says_it_in_these_words() -> None:
    assert kafka.cluster.log.name == LOGGER
    source = inspect.getsource(kafka.cluster)
    assert NOT_FOUND in source
    assert NOT_ASKED in source
