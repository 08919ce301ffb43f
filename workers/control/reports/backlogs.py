"""Counts the rows that wait for groups which do not process: those that failed, or whose node is down.

A replica counts its own rows. For a group without one that works, control asks two things: where its journal
ends, which is what was processed, and where its input topics end.
"""

from __future__ import annotations

import logging

from pipeline_runtime.batch.inputs import group_inputs
from pipeline_runtime.journal.backlog import Input, Processed, processed, waiting_rows
from pipeline_runtime.journal.reader import read_once
from pipeline_runtime.kafka.clients import KafkaConnectionError, KafkaError, KafkaTimeoutError, TopicPartition
from pipeline_runtime.kafka.ends import TopicEnds
from pipeline_runtime.kafka.topics import TopicLook
from pipeline_runtime.kafka.transactions import Doubtful
from pipeline_runtime.model.spec import GroupSpec
from webapp.audit.announcements import announce
from webapp.handovers.facts import group_facts
from webapp.placements.group_state import GroupFacts, status_of
from webapp.placements.models import Deployment, GroupPlacement
from workers.control.context import ControlContext
from workers.control.periodic import Periodic

log = logging.getLogger(__name__)

EACH_S = 2.0
STANDS = ("failed", "silent", "stalled", "starting", "restoring")
"""Statuses in which no replica says how many rows wait."""


def inputs_of(spec: GroupSpec) -> tuple[list[Input], set[str]]:
    """Returns the partitions of Fogline's own that the group reads, and the users' own topics."""
    read = [item for item in group_inputs(spec) if item.topic is not None]
    ours = [
        Input(key, TopicPartition(item.topic, partition))
        for item in read
        if not item.external
        for partition, key in enumerate(item.end_keys())
    ]
    return ours, {str(item.topic) for item in read if item.external}


class Backlogs(Periodic):
    """A thread that writes `GroupPlacement.backlog_rows` of groups that do not process, and clears it when
    they do. If it fails, the figures are older, or missing."""

    name, failure = "backlogs", "rows that wait were not counted this time"

    def __init__(self, context: ControlContext) -> None:
        super().__init__(context, EACH_S)
        self._ends = TopicEnds(context.kafka)
        self._topics = TopicLook(context.kafka)
        self._known: dict[str, Processed] = {}  # by journal
        self._away = False  # the broker has not answered in this look

    def let_go(self) -> None:
        self._ends.close()
        self._topics.close()

    def look(self) -> None:
        """Counts once."""
        deployments = list(Deployment.objects.filter(status__in=Deployment.ACTIVE))
        stands = {
            (deployment, group)
            for deployment, groups in group_facts(deployments).items()
            for group, facts in groups.items()
            if stands_still(facts)
        }
        changed = False
        self._away = False
        known = GroupPlacement.objects.filter(deployment__in=deployments)
        for placement in known.defer("spec"):
            key = (placement.deployment_id, placement.group)
            rows = self._count(placement) if key in stands else None
            if rows != placement.backlog_rows:
                GroupPlacement.objects.filter(pk=placement.pk).update(backlog_rows=rows)
                changed = True
        if changed:
            announce()

    def _count(self, placement: GroupPlacement) -> int | None:
        """Returns None if the broker does not say where its topics end, or its journal where they were read
        last. A broker that has not answered in time is asked again in the next look."""
        if self._away:
            return None
        try:
            return self._asked(GroupSpec.model_validate(placement.spec))
        except (KafkaError, Doubtful) as error:
            self._away = isinstance(error, KafkaConnectionError | KafkaTimeoutError | Doubtful)
            log.debug("%s: the rows that wait for it cannot be counted: %s", placement, error)
            return None

    def _asked(self, spec: GroupSpec) -> int | None:
        """Raises KafkaError and Doubtful."""
        (inputs, outside), journal = inputs_of(spec), TopicPartition(spec.journal, 0)
        if not inputs and not outside:
            return 0
        newest = self._ends.ask([journal, *(each.at for each in inputs)])
        end = newest[journal]
        known = self._known.get(spec.journal)
        if known is None or known.journal_end != end:
            topics = {each.at.topic for each in inputs} | outside
            known = processed(end, read_once(self._context.kafka, spec.journal), topics)
            self._known[spec.journal] = known
        return waiting_rows(known, inputs, newest, self._topics.ask(outside) if outside else {})


def stands_still(facts: GroupFacts) -> bool:
    return status_of(facts) in STANDS
