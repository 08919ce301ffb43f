"""A preview: what an element of a draft makes of some rows, as a node finds out. Nothing is deployed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from typing_extensions import TypedDict

from pipeline_runtime.model.document import parse_document
from pipeline_runtime.model.faults import DocumentInvalid
from pipeline_runtime.model.preview import PreviewAnswer, PreviewStream, Refusal, SampleRow
from pipeline_runtime.model.schema import Field, StreamSchema
from pipeline_runtime.model.spec import GroupSpec
from pipeline_runtime.planning.path import from_running, path_document, reads_of, running_streams
from webapp.accounts.models import Role, User
from webapp.accounts.permissions import require
from webapp.backends.node_questions import SAFE, ask_preview
from webapp.connections.selectors import named_in, sent_of
from webapp.moments import iso_of_ms
from webapp.nodes.models import Node
from webapp.pipelines.checking import fault_json, planned
from webapp.pipelines.models import Pipeline
from webapp.pipelines.selectors import no_element
from webapp.pipelines.shape import element_of, elements_of, names_of
from webapp.placements.selectors import active_deployment, specs_of
from webapp.problems import BackendAway, Conflict, Invalid

Rows = Literal["source", "running", "pinned"]
"""Where the rows come from: the pipeline's own sources, the streams of what runs, or the rows that are pinned
to the element."""


Given = Mapping[str, Sequence[SampleRow]]
"""Rows of each input of an element, by port."""


class PreviewRowOut(TypedDict):
    at: str | None
    key: str | None
    values: list[Any]
    """in the order of the columns; a whole number beyond 2^53 is a text"""
    reason: str | None
    """why the element could not take it"""


class PreviewStreamOut(TypedDict):
    port: str
    element: str
    """whose rows these are"""
    title: str
    columns: list[Field]
    rows: list[PreviewRowOut]
    count: int
    """how many rows there were in the preview"""


class PreviewLetterOut(TypedDict):
    reason: str
    raw: str


class PreviewLoss(TypedDict):
    element: str
    title: str
    count: int


class PreviewTrouble(TypedDict):
    kind: Refusal
    element: str
    title: str
    message: str
    next: str


class CellDifference(TypedDict):
    name: str
    """the column; "time" and "key" stand for those of the row"""
    expected: Any
    found: Any


class RowDifference(TypedDict):
    """A row that is not the one that is expected at its place."""

    place: int
    """from 1"""
    kind: Literal["differs", "missing", "unexpected"]
    cells: list[CellDifference]
    """of a row that differs"""


class PinnedRows(TypedDict):
    """The rows that are pinned to an element."""

    rows: int
    at: str
    by: str | None
    expects: bool
    """whether it is said what the element is to make of them"""
    differences: list[RowDifference]
    """of the output from what is expected, if this is a preview on these rows"""
    letters_expected: int | None
    """dead letters; null if nothing is expected"""


class ElementPreview(TypedDict):
    node: str
    ms: int
    """how long it took"""
    trouble: PreviewTrouble | None
    """why there is nothing, or only a part"""
    newest: bool
    """whether the shown rows are the newest ones; else they are the first"""
    inputs: list[PreviewStreamOut]
    output: PreviewStreamOut | None
    """null for an element that gives no rows"""
    letters: list[PreviewLetterOut]
    letters_count: int
    read: int
    """rows that were read from outside the pipeline"""
    whole: bool
    """whether these were all rows that the sources have"""
    lost: list[PreviewLoss]
    """rows that elements before it could not take"""
    pinned: PinnedRows | None
    """null if no rows are pinned to it"""


@dataclass(frozen=True)
class Asked:
    """A question about an element of a draft, and where to ask it."""

    id: str
    node: str
    groups: tuple[GroupSpec, ...]
    reads: dict[str, str]
    names: Mapping[str, str]

    def own_group(self) -> tuple[GroupSpec, ...]:
        """Returns the group of the element alone. Raises Invalid for a view, which has none."""
        found = tuple(each for each in self.groups if each.group == self.id)
        if not found:
            raise Invalid(
                f"{self.names[self.id]} only shows rows, so no rows are pinned to it.",
                safe=SAFE,
                next="Pin rows to the element before it.",
            )
        return found

    def answer(self, *, given: Given | None = None, sample: bool = False) -> PreviewAnswer:
        """Asks the node, and returns its answer. `given`: rows by port that come to the element instead of
        its own. Raises BackendAway, and Invalid if rows are given to a view."""
        if given is None:
            return ask_preview(
                self.node,
                element=self.id,
                groups=self.groups,
                reads=self.reads,
                sample=sample,
                connections=sent_of(_connections(self.groups)),
            )
        rows = {self.reads[port]: each for port, each in given.items() if port in self.reads}
        return ask_preview(self.node, element=self.id, groups=self.own_group(), reads=self.reads, given=rows)


def asked(
    actor: User, pipeline: Pipeline, document: dict[str, Any], id: str, rows: Rows, node: str | None
) -> Asked:
    """Returns the question to a node. Raises Missing, Invalid with the faults that prevent a preview,
    Conflict and BackendAway."""
    require(actor, Role.EDITOR, "preview pipelines")
    if element_of(document, id) is None:
        raise no_element(pipeline.name, id)
    names = names_of(document)
    groups = _planned(document, id, names[id])
    if rows == "running":
        groups = _running(pipeline, groups, id, names[id])
    return Asked(id, _node(document, groups, node), groups, reads_of(document, id), names)


def shown_preview(question: Asked, answer: PreviewAnswer, took_s: float) -> ElementPreview:
    """Returns a node's answer in the form of the API."""
    shown = _shown(answer, question.id, question.reads, question.groups, question.names)
    shown["node"], shown["trouble"] = question.node, _trouble(answer, question.names, question.node)
    shown["ms"] = round(took_s * 1000)
    return shown


def _connections(groups: Iterable[GroupSpec]) -> set[str]:
    """Returns the connections by which the sources of the groups read."""
    sources = (each.model_dump() for spec in groups for each in spec.elements if not each.inputs)
    return {each.name for each in named_in(sources)}


def _planned(document: dict[str, Any], id: str, name: str) -> tuple[GroupSpec, ...]:
    try:
        groups = planned(parse_document(path_document(document, id)), "preview")
    except DocumentInvalid as error:
        raise Invalid(
            f"{name} cannot be previewed yet: {error.faults[0].words}.",
            safe=SAFE,
            next="Mend what the problems below the canvas say, then the preview comes by itself.",
            faults=[fault_json(fault) for fault in error.faults],
        ) from error
    if not groups:
        raise Invalid(f"{name} reads nothing yet.", safe=SAFE, next="Connect it to a source.")
    return groups


def _running(pipeline: Pipeline, groups: tuple[GroupSpec, ...], id: str, name: str) -> tuple[GroupSpec, ...]:
    deployment = active_deployment(pipeline)
    streams = running_streams(specs_of(deployment)) if deployment is not None else {}
    found = from_running(groups, id, streams)
    if found == groups:
        raise Conflict(
            f"Nothing that runs gives rows to {name} as it is drawn now.",
            safe=SAFE,
            next="Preview it on the rows of its source.",
        )
    return found


def _node(document: dict[str, Any], groups: Iterable[GroupSpec], wanted: str | None) -> str:
    """Returns the node to ask: the one that the user has chosen, or else one where an element of the path is
    to run, or else the least busy node."""
    nodes = {each.name: each for each in Node.objects.filter(up=True)}
    if wanted is not None:
        if wanted not in nodes:
            raise BackendAway(
                f"The node {wanted} does not answer.", safe=SAFE, next="Choose another node for the preview."
            )
        return wanted
    if not nodes:
        raise BackendAway(
            "No node answers, and a preview runs on a node.", safe=SAFE, next="Start a node, then try again."
        )
    on_path = {each.elements[0].id for each in groups}
    drawn = [each for each in elements_of(document) if each["id"] in on_path]
    for element in drawn:
        if element.get("node") in nodes:
            return str(element["node"])
    sites = {element.get("site") for element in drawn} - {None}
    there = [each for each in nodes.values() if each.place in sites] or list(nodes.values())
    return min(there, key=lambda each: (not each.takes_new, _cpu(each), each.name)).name


def _cpu(node: Node) -> float:
    load = node.load if isinstance(node.load, dict) else {}
    return float(load.get("cpu_ratio") or 0.0)


# -- the answer ------------------------------------------------------------------------------------------


def _shown(
    answer: PreviewAnswer,
    id: str,
    reads: Mapping[str, str],
    groups: Iterable[GroupSpec],
    names: Mapping[str, str],
) -> ElementPreview:
    schemas = {source: each for spec in groups for source, each in spec.schemas.items()}

    def stream(port: str, source: str, found: PreviewStream) -> PreviewStreamOut:
        element = source.partition(".")[0]
        return {
            "port": port,
            "element": element,
            "title": names.get(element, element),
            "columns": [*schemas.get(source, StreamSchema(fields=())).fields],
            "rows": [
                {
                    "at": iso_of_ms(row.time_ms),
                    "key": row.key,
                    "values": list(row.values),
                    "reason": row.reason,
                }
                for row in found.rows
            ],
            "count": found.count,
        }

    return {
        "node": "",
        "ms": 0,
        "trouble": None,
        "newest": answer.newest,
        "inputs": [
            stream(port, source, answer.inputs[port])
            for port, source in reads.items()
            if port in answer.inputs
        ],
        "output": None if answer.output is None else stream("out", f"{id}.out", answer.output),
        "letters": [{"reason": each.reason, "raw": each.raw} for each in answer.letters],
        "letters_count": answer.letters_count,
        "read": answer.read,
        "whole": answer.whole,
        "pinned": None,
        "lost": [
            {"element": each, "title": names.get(each, each), "count": count}
            for each, count in answer.lost.items()
        ],
    }


def _trouble(answer: PreviewAnswer, names: Mapping[str, str], node: str) -> PreviewTrouble | None:
    if answer.refused is None:
        return None
    title = names.get(answer.at, answer.at)
    message, next_step = _WORDS[answer.refused]
    words = {"title": title, "node": node, "why": answer.why}
    return {
        "kind": answer.refused,
        "element": answer.at,
        "title": title,
        "message": message.format(**words),
        "next": next_step.format(**words),
    }


_WORDS: dict[Refusal, tuple[str, str]] = {
    "busy": ("{node} has other previews to make first.", "It is tried again by itself."),
    "fetching": ("{node} fetches the file first.", "It is tried again by itself."),
    "starting": ("{node} first starts the process that makes previews.", "It is tried again by itself."),
    "reading": ("{node} still reads what comes to {title}.", "It is tried again by itself."),
    "too-long": (
        "{node} needed more than a few seconds, so the preview was stopped.",
        "Preview an element before this one, or choose another node.",
    ),
    "too-much": (
        "It needed more memory than a preview may have, so it was stopped.",
        "Preview an element before this one to see which of them needs that much.",
    ),
    "spark": (
        "{title} is written for Spark, so it is not previewed, and neither is what comes after it.",
        "Preview an element before it.",
    ),
    "unread": (
        "A preview does not read what comes to {title}: {why}",
        "Deploy it. Then preview it at the newest rows of its stream, or pin rows.",
    ),
    "unreachable": ("What {title} reads cannot be reached from {node}: {why}", "Choose another node."),
    "failed": (
        "{title} failed on these rows: {why}",
        "Change its parameters. Deployed like this, it would stop with the same error.",
    ),
    "ended": (
        "The preview ended without an answer on {node}.",
        "Try again. If it happens again, see whether that node is short of memory.",
    ),
}
