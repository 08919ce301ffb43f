"""The registered nodes as placement sees them."""

from __future__ import annotations

from pipeline_runtime.placement.choose import Candidate
from webapp.nodes.models import Node
from webapp.pipelines.models import Deployment, GroupPlacement


def candidates() -> list[Candidate]:
    elements: dict[int, int] = {}
    for placement in GroupPlacement.objects.filter(deployment__status__in=Deployment.ACTIVE):
        elements[placement.node_id] = elements.get(placement.node_id, 0) + len(placement.spec["elements"])
    return [
        Candidate(node.name, node.up, node.ready, node.cordoned, elements.get(node.pk, 0))
        for node in Node.objects.all()
    ]
