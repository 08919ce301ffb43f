"""Reads nodes."""

from __future__ import annotations

from webapp.nodes.models import Node
from webapp.problems import Missing


def node_named(name: str) -> Node:
    node = Node.objects.filter(name=name).first()
    if node is None:
        raise Missing(
            f'There is no node "{name}".', next="See the list of nodes, or add one with an enrolment token."
        )
    return node
