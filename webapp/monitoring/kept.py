"""The state of a running element, key by key, as its node reports it."""

from __future__ import annotations

from datetime import UTC, datetime

from pipeline_runtime.model.kept import KeptAnswer, KeptEntry
from pipeline_runtime.model.plain_data import data_in, escaped, exact
from pipeline_runtime.operators.registry import OperatorUnknown, default_registry
from pipeline_runtime.operators.sdk import Processor
from webapp.backends.node_questions import SAFE, ask_kept
from webapp.handovers.facts import group_id
from webapp.moments import iso_of_ms
from webapp.monitoring.board import element_named
from webapp.monitoring.schemas import KeptKey, KeptPage, LiveElement
from webapp.nodes.models import Node
from webapp.pipelines.models import Pipeline
from webapp.placements.selectors import active_deployment
from webapp.problems import BackendAway, Conflict

AGAIN = "You can see its state when it runs again."


def kept_page(pipeline: Pipeline, id: str, search: str, after: str | None, limit: int) -> KeptPage:
    """Returns a page of an element's state. Raises Missing, Conflict if there is no state to show, and
    BackendAway."""
    element = element_named(pipeline, id)
    _keeps_its_state(element)
    deployment, node = active_deployment(pipeline), element["node"]
    if deployment is None or node is None:
        raise Conflict(f'"{element["title"]}" does not run, so there is no state to look at.', next=AGAIN)
    if not Node.objects.filter(name=node, up=True).exists():
        raise BackendAway(
            f'The node {node}, which runs "{element["title"]}", does not answer.',
            safe="Its state is part of its checkpoints.",
            next="Restore the element on another node, or start this one again.",
        )
    group = f"{deployment.pk}.{group_id(deployment, id)}"
    answer = ask_kept(node, group=group, element=id, search=search, after=after, limit=limit)
    _refused(answer, element, node)
    return {
        "at": datetime.now(UTC).isoformat(),
        "keys": answer.keys,
        "entries": [_entry(entry) for entry in answer.entries],
        "next": answer.next,
        "looked": answer.looked,
    }


def _keeps_its_state(element: LiveElement) -> None:
    try:
        operator = default_registry().get(element["type"])
    except OperatorUnknown:
        return  # its node may know it
    if not operator.stateful:
        raise Conflict(
            f'"{element["title"]}" keeps no state.',
            next="Look at an element that keeps one, such as a window.",
        )
    if not issubclass(operator, Processor):
        raise Conflict(
            f'The state of "{element["title"]}" is kept by Spark, and cannot be looked at by key.',
            next="Look at its output instead.",
        )


def _refused(answer: KeptAnswer, element: LiveElement, node: str) -> None:
    title = element["title"]
    if answer.refused == "away":
        raise Conflict(f'"{title}" does not run on {node} now, so its state is not open.', next=AGAIN)
    if answer.refused == "elsewhere":
        raise Conflict(
            f'"{title}" keeps no state: another element that runs as one with it does.',
            next="Look at the state of that element.",
        )
    if answer.refused == "failed":
        raise BackendAway(
            f'The state of "{title}" could not be read on {node}.', safe=SAFE, next=f"See the log of {node}."
        )


def _entry(entry: KeptEntry) -> KeptKey:
    return {
        "key": entry.key,
        "key_cut": entry.key_cut,
        "state": escaped(entry.state) if entry.state_cut else exact(data_in(entry.state)),
        "state_cut": entry.state_cut,
        "timers": [iso_of_ms(time_ms) for time_ms in entry.timers_ms],
    }
