"""Plans what nodes run for a valid document: one GroupSpec per group, in topological order."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Literal

from pipeline_runtime.model.document import Element, PipelineDocument, parse_reference
from pipeline_runtime.model.faults import DocumentInvalid
from pipeline_runtime.model.ids import intake_topic, position_topic, stream_topic
from pipeline_runtime.model.schema import StreamSchema
from pipeline_runtime.model.spec import (
    LATENCY_MS,
    ElementSpec,
    Follow,
    Frozen,
    GroupSpec,
    InputStream,
    OutputStream,
    Pace,
)
from pipeline_runtime.operators.connected import ConnectorSink, ConnectorSource
from pipeline_runtime.operators.expressions import ExpressionInvalid, columns_of, parse
from pipeline_runtime.operators.registry import Registry
from pipeline_runtime.operators.sdk import (
    FileDescriber,
    Operator,
    SinkOperator,
    SourceOperator,
    ViewOperator,
)
from pipeline_runtime.planning.graph import topological_order
from pipeline_runtime.planning.validation import validate

_STRICTNESS: dict[Follow, int] = {"coalesced": 0, "exact": 1, "none": 2}
_BATCH_TIME = "_batch_time"


class TopicSpec(Frozen):
    """A topic that a deployment creates."""

    name: str
    partitions: int
    kind: Literal["stream", "position", "journal", "released", "dead"]


def plan_groups(
    document: PipelineDocument,
    deployment: str,
    registry: Registry,
    files: Mapping[str, str],
    *,
    describe_file: FileDescriber | None = None,
    latency_ms: int = LATENCY_MS,
) -> tuple[GroupSpec, ...]:
    """Returns the groups of a deployment, producers before consumers.

    `files` maps each file reference to its sha256 in the file store. `latency_ms` is the target of groups for
    which the document sets none. Raises DocumentInvalid when the document has any fault; no part of it is
    planned then.
    """
    validation = validate(document, registry, describe_file=describe_file)
    if validation.faults:
        raise DocumentInvalid(validation.faults)
    plan = _Plan(document, deployment, registry, files, validation.schemas, describe_file, latency_ms)
    return plan.groups()


def pins(document: PipelineDocument) -> dict[str, str | None]:
    """Returns group id -> the node that the document pins the group to, or None."""
    nodes: dict[str, str | None] = {}
    for element in document.spec.elements:
        group = group_of(document, element.id)
        nodes[group] = nodes.get(group) or element.node
    return nodes


def sites(document: PipelineDocument) -> dict[str, str]:
    """Returns group id -> the site at which the document wants the group. Groups without a site are left
    out."""
    return {group_of(document, each.id): each.site for each in document.spec.elements if each.site}


def reads(document: PipelineDocument) -> dict[str, frozenset[str]]:
    """Returns group id -> the other groups whose streams it reads."""
    found: dict[str, set[str]] = {}
    for element in document.spec.elements:
        mine = group_of(document, element.id)
        producers = {group_of(document, parse_reference(ref)[0]) for ref in element.inputs.values()}
        found.setdefault(mine, set()).update(producers - {mine})
    return {group: frozenset(others) for group, others in found.items()}


def group_of(document: PipelineDocument, element: str) -> str:
    """Returns the id of the element's group. An element that the user did not group is a group under its own
    id."""
    return next((g.id for g in document.spec.groups if element in g.elements), element)


def topics(spec: GroupSpec) -> tuple[TopicSpec, ...]:
    """Returns the topics that Fogline creates for the group. Topics of the user's own are not among them."""
    streams = [
        TopicSpec(name=output.topic, partitions=output.partitions, kind="stream")
        for output in spec.outputs
        if not output.external
    ]
    streams += [
        TopicSpec(name=item.topic, partitions=item.partitions, kind="stream")
        for item in spec.inputs
        if item.intake
    ]
    positions = [
        TopicSpec(name=position_topic(spec.deployment, item.consumer), partitions=1, kind="position")
        for item in spec.inputs
        if item.once
    ]
    positions += [
        TopicSpec(
            name=position_topic(spec.deployment, parse_reference(output.source)[0]),
            partitions=1,
            kind="position",
        )
        for output in spec.outputs
        if output.noted
    ]
    dead = [
        TopicSpec(name=spec.dead_letters(element.id), partitions=1, kind="dead") for element in spec.elements
    ]
    own = [
        TopicSpec(name=spec.journal, partitions=1, kind="journal"),
        TopicSpec(name=spec.released, partitions=1, kind="released"),
    ]
    return (*streams, *positions, *own, *dead)


class _Plan:
    def __init__(
        self,
        document: PipelineDocument,
        deployment: str,
        registry: Registry,
        files: Mapping[str, str],
        schemas: Mapping[str, StreamSchema],
        describe_file: FileDescriber | None,
        latency_ms: int,
    ) -> None:
        self.document = document
        self.latency_ms = latency_ms
        self.deployment = deployment
        self.files = files
        self.schemas = dict(schemas)
        self.elements: dict[str, Element] = {element.id: element for element in document.spec.elements}
        self.operators: dict[str, Operator] = {
            id: registry.create(element.type, element.params, describe_file)
            for id, element in self.elements.items()
        }
        self.inputs = {
            id: {port: ".".join(parse_reference(ref)) for port, ref in element.inputs.items()}
            for id, element in self.elements.items()
        }
        self.before = {
            id: [source.partition(".")[0] for source in inputs.values()] for id, inputs in self.inputs.items()
        }
        # Sinks have no output port, but their code gets a schema as every other element does.
        for id, operator in self.operators.items():
            if not operator.outputs and not isinstance(operator, ViewOperator):
                self.schemas[f"{id}.out"] = operator.output_schema(self.input_schemas(id))

    def input_schemas(self, id: str) -> dict[str, StreamSchema]:
        return {port: self.schemas[source] for port, source in self.inputs[id].items()}

    def resolved_params(self, id: str) -> dict[str, Any]:
        params = self.operators[id].resolve(self.input_schemas(id))
        return dict(params.model_dump(mode="json", by_alias=True))

    def groups(self) -> tuple[GroupSpec, ...]:
        order = topological_order(self.elements, self.before)
        members: dict[str, list[str]] = {}
        for id in order:
            if not isinstance(self.operators[id], ViewOperator):
                members.setdefault(group_of(self.document, id), []).append(id)
        group_before = {
            group: [
                group_of(self.document, producer)
                for id in ids
                for producer in self.before[id]
                if producer not in ids
            ]
            for group, ids in members.items()
        }
        return tuple(self.group(group, members[group]) for group in topological_order(members, group_before))

    def group(self, group: str, members: list[str]) -> GroupSpec:
        inputs = self.group_inputs(members)
        outputs = self.group_outputs(members)
        elements = tuple(
            ElementSpec(
                id=id,
                type=self.elements[id].type,
                # These parameters are validated and complete, so that a default that changes later changes
                # nothing that runs.
                params=self.resolved_params(id),
                inputs=self.inputs[id],
            )
            for id in members
        )
        ports = {source for id in members for source in self.inputs[id].values()}
        ports |= {f"{id}.out" for id in members if f"{id}.out" in self.schemas}
        ports |= {f"{id}.{port.name}" for id in members for port in self.operators[id].outputs}
        references = sorted({ref for id in members for ref in self.operators[id].files()})
        files = {ref: self.files[ref] for ref in references if ref in self.files}
        follow = self.follow(elements, inputs)
        return GroupSpec(
            deployment=self.deployment,
            pipeline=self.document.metadata.name,
            group=group,
            elements=elements,
            inputs=inputs,
            outputs=outputs,
            schemas={port: self.schemas[port] for port in sorted(ports)},
            follow=follow,
            pace=self.pace(members),
            files=files,
            version=self.version(elements, inputs, outputs, files, follow),
        )

    def pace(self, members: list[str]) -> Pace:
        said = [target for id in members if (target := self.elements[id].latency_ms) is not None]
        return Pace(latency_ms=min(said, default=self.latency_ms))

    def group_inputs(self, members: list[str]) -> tuple[InputStream, ...]:
        streams = []
        for id in members:
            operator = self.operators[id]
            if isinstance(operator, ConnectorSource):
                streams.append(
                    InputStream(
                        source=f"{id}.out",
                        topic=intake_topic(self.deployment, id),
                        data_schema=self.schemas[f"{id}.out"],
                        consumer=id,
                        external=True,
                        intake=True,
                        once=operator.delivery == "exactly once",
                        reading=operator.reading(),
                    )
                )
            elif operator.external == "in":
                streams.append(
                    InputStream(
                        source=f"{id}.out",
                        topic=operator.params.topic,
                        partitions=operator.params.partitions or 1,
                        data_schema=self.schemas[f"{id}.out"],
                        consumer=id,
                        start=operator.params.start,
                        external=True,
                        all_partitions=operator.params.partitions is None,
                        gap=operator.params.gap,
                        reading=operator.params.reading(),
                    )
                )
            for source in dict.fromkeys(self.inputs[id].values()):
                producer, port = parse_reference(source)
                if producer not in members:
                    streams.append(
                        InputStream(
                            source=source,
                            topic=stream_topic(self.deployment, producer, port),
                            data_schema=self.schemas[source],
                            consumer=id,
                        )
                    )
        return tuple(streams)

    def group_outputs(self, members: list[str]) -> tuple[OutputStream, ...]:
        streams = []
        for id in members:
            operator = self.operators[id]
            if operator.external == "out":
                streams.append(
                    OutputStream(
                        source=f"{id}.out",
                        topic=operator.params.topic,
                        partitions=operator.params.partitions,
                        data_schema=self.schemas[f"{id}.out"],
                        external=True,
                        writing=operator.params.writing(),
                    )
                )
            if isinstance(operator, ConnectorSink):
                streams.append(
                    OutputStream(
                        source=f"{id}.out",
                        topic=stream_topic(self.deployment, id),
                        data_schema=self.schemas[f"{id}.out"],
                        delivered=True,
                        noted=operator.noted,
                    )
                )
            for port in operator.outputs:
                source = f"{id}.{port.name}"
                if self.leaves(source, members):
                    streams.append(
                        OutputStream(
                            source=source,
                            topic=stream_topic(self.deployment, id, port.name),
                            data_schema=self.schemas[source],
                        )
                    )
        return tuple(streams)

    def leaves(self, source: str, members: list[str]) -> bool:
        """Returns whether a port needs a topic: an element outside the group reads it, or none at all reads
        it (then the topic lets a user look at it), or its rows are alerts, which control reads."""
        if self.operators[parse_reference(source)[0]].category == "alert":
            return True
        consumers = [id for id, inputs in self.inputs.items() if source in inputs.values()]
        return not consumers or any(consumer not in members for consumer in consumers)

    def follow(self, elements: tuple[ElementSpec, ...], inputs: tuple[InputStream, ...]) -> Follow:
        strictest = self.strictest(elements)
        return "exact" if strictest == "coalesced" and self.shows_batches(elements, inputs) else strictest

    def strictest(self, elements: tuple[ElementSpec, ...]) -> Follow:
        """Returns the strictest way of following that any of the operators needs by itself."""
        follows = [self.operators[e.id].follows(self.input_schemas(e.id)) for e in elements]
        return max(follows, key=lambda follow: _STRICTNESS[follow])

    def shows_batches(self, elements: tuple[ElementSpec, ...], inputs: tuple[InputStream, ...]) -> bool:
        """Returns whether the group's state or output depends on where batches are cut, even if no operator
        says so."""
        operators = [self.operators[element.id] for element in elements]
        stateful = any(operator.stateful for operator in operators)
        source = any(isinstance(operator, SourceOperator) for operator in operators)
        sink = any(isinstance(operator, SinkOperator) for operator in operators)
        several = sum(stream.partitions for stream in inputs) > 1
        # What is far ahead of its arrival is so by the time of the batch.
        several = several or any(stream.external for stream in inputs)
        if (stateful or sink) and not source and several:
            # the order in which rows of several partitions interleave shows in the state or in the file
            return True
        if sink and any(operator.output_mode == "update" for operator in operators):
            return True  # a sink gets one row per key and batch
        # All rows of a batch have the same batch time.
        return (stateful or sink) and any(_uses_batch_time(element.params) for element in elements)

    def version(
        self,
        elements: tuple[ElementSpec, ...],
        inputs: tuple[InputStream, ...],
        outputs: tuple[OutputStream, ...],
        files: Mapping[str, str],
        follow: Follow,
    ) -> str:
        """Returns a short hash of everything that decides what the group computes and how it is followed."""
        content: dict[str, Any] = {
            "elements": [[e.id, e.type, self.operators[e.id].version, e.params, e.inputs] for e in elements],
            # Formats follow from the parameters.
            "inputs": [
                stream.model_dump(
                    mode="json", exclude={"topic": True, "intake": True, "once": True, "reading": {"format"}}
                )
                for stream in inputs
            ],
            "outputs": [
                stream.model_dump(mode="json", exclude={"topic", "delivered", "writing"})
                for stream in outputs
            ],
            "files": dict(files),
        }
        # What the operators need follows from the content above. Hashing it too would give everything that
        # runs a new version, and an upgrade in place refuses an element with state whose version alone has
        # changed.
        if follow != self.strictest(elements):
            content["follow"] = follow
        text = json.dumps(content, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:12]


def _uses_batch_time(params: Any) -> bool:
    """Returns whether any expression among the parameters reads `_batch_time`, however deep it is nested."""
    if isinstance(params, dict):
        return any(_uses_batch_time(value) for value in params.values())
    if isinstance(params, list):
        return any(_uses_batch_time(value) for value in params)
    if not isinstance(params, str) or _BATCH_TIME not in params:
        return False
    try:
        return _BATCH_TIME in columns_of(parse(params))
    except ExpressionInvalid:
        return False  # this text is no expression; expressions were checked with the document
