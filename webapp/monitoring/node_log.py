"""The newest lines of a node's log, as the node itself tells them."""

from __future__ import annotations

from datetime import UTC, datetime

from pipeline_runtime.model.node_log import Level
from webapp.accounts.models import Role, User
from webapp.accounts.permissions import require
from webapp.backends.node_questions import SAFE, ask_log
from webapp.handovers.facts import group_id
from webapp.moments import iso_of_ms
from webapp.monitoring.board import element_named
from webapp.monitoring.schemas import NodeLog
from webapp.nodes.models import Node
from webapp.nodes.selectors import node_named
from webapp.pipelines.models import Pipeline
from webapp.placements.selectors import active_deployment
from webapp.problems import BackendAway, Conflict


def node_log(actor: User, name: str, search: str, level: Level, limit: int) -> NodeLog:
    """Returns the newest lines of the node. Raises Forbidden, Missing and BackendAway."""
    _allowed(actor)
    return _asked(node_named(name), "", search, level, limit)


def element_log(actor: User, pipeline: Pipeline, id: str, search: str, level: Level, limit: int) -> NodeLog:
    """Returns the newest lines about the element's group, from the node that runs it.

    Raises Forbidden, Missing, Conflict if it does not run, and BackendAway.
    """
    _allowed(actor)
    element = element_named(pipeline, id)
    deployment, node = active_deployment(pipeline), element["node"]
    if deployment is None or node is None:
        raise Conflict(
            f'"{element["title"]}" does not run, so no node writes a log about it.',
            next="You can see the log when it runs again.",
        )
    group = f"{deployment.pk}.{group_id(deployment, id)}"
    return _asked(node_named(node), group, search, level, limit)


def _allowed(actor: User) -> None:
    # Lines may name addresses and paths, and an operator's error may quote a row.
    require(actor, Role.OPERATOR, "read logs of nodes")


def _asked(node: Node, group: str, search: str, level: Level, limit: int) -> NodeLog:
    if not node.up:
        raise BackendAway(
            f"The node {node.name} is not up, so it cannot show its log.",
            safe=SAFE,
            next=f"Look into FOGLINE_DATA/logs/{node.name}.log on its machine, or start the node again.",
        )
    answer = ask_log(node.name, group=group, search=search, level=level, limit=limit)
    if answer.failed:
        raise BackendAway(
            f"The log of {node.name} could not be read.",
            safe=SAFE,
            next=f"Look into FOGLINE_DATA/logs/{node.name}.log on its machine.",
        )
    return {
        "node": node.name,
        "at": datetime.now(UTC).isoformat(),
        "since": iso_of_ms(answer.since_ms),
        "matching": answer.matching,
        "lines": [
            {"at": iso_of_ms(line.at_ms), "level": line.level, "logger": line.logger, "text": line.text}
            for line in answer.lines
        ],
    }
