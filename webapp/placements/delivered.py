"""Streams whose rows a connector delivers to a system outside."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from pipeline_runtime.model.connectors import ConnectorStatus
from webapp.pipelines.shape import names_of
from webapp.placements.models import Deployment, Replica
from webapp.placements.selectors import left_over_of, specs_of


@dataclass(frozen=True)
class DeliveredStream:
    element: str
    title: str  # what people call the element
    group: str
    topic: str


def delivered_streams(
    deployment: Deployment, former: Mapping[str, str] = MappingProxyType({})
) -> tuple[DeliveredStream, ...]:
    """Returns those of a deployment, also of elements that a failed upgrade has ended. `former`: what people
    call the elements that its version lacks."""
    names = {**former, **names_of(deployment.version.document)}
    found: dict[str, DeliveredStream] = {}
    for spec in (*left_over_of(deployment), *specs_of(deployment)):
        elements = {each.id for each in spec.elements}
        for stream in spec.outputs:
            element = stream.source.partition(".")[0]
            if stream.delivered and element in elements:
                title = names.get(element, element)
                found[element] = DeliveredStream(element, title, spec.group, stream.topic)
    return tuple(found.values())


def failing_connectors(deployment: Deployment) -> dict[str, str]:
    """Returns why the connectors fail whose nodes tell of them, by element: empty of one that does not fail,
    without a full stop. What a node tells counts that is to run the group, not what a former one has told."""
    placed = {*deployment.placements.values_list("group", "node", "generation")}
    rows = Replica.objects.filter(deployment=deployment)
    told = [row.status for row in rows if (row.group, row.node_id, row.generation) in placed]
    connectors = (ConnectorStatus.model_validate(each) for one in told for each in one.get("connectors", ()))
    return {each.element: each.trouble for each in connectors}
