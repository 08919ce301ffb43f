"""Which elements of deployed pipelines use a connection."""

from __future__ import annotations

from collections import defaultdict

from webapp.connections.selectors import named_in
from webapp.pipelines.shape import names_of
from webapp.placements.models import Deployment, GroupPlacement


def uses_of_connections() -> dict[str, list[str]]:
    """Returns the elements by the connection's name, as people call them: "Climate of Plant"."""
    found: dict[str, list[str]] = defaultdict(list)
    active = GroupPlacement.objects.filter(deployment__status__in=Deployment.ACTIVE)
    for placement in active.select_related("deployment__pipeline", "deployment__version"):
        titles = names_of(placement.deployment.version.document)
        for element in placement.spec["elements"]:
            for named in named_in([element]):
                title = titles.get(element["id"], element["id"])
                found[named.name].append(f"{title} of {placement.deployment.pipeline.name}")
    return {name: sorted(set(users)) for name, users in found.items()}
