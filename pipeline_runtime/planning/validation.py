"""Finds all faults of a pipeline document at once, and the schema of every stream.

Drafts are welcome too: documents with faults, as an editor holds them. A fault in one element hides no fault
in another.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pipeline_runtime.model.document import PipelineDocument, form_faults, parse_reference, refusals
from pipeline_runtime.model.faults import (
    FAULTS_MAX,
    Fault,
    Instead,
    did_you_mean,
    listed,
    short,
)
from pipeline_runtime.model.names import element_name, group_name, listed_and, place_words, with_titles
from pipeline_runtime.model.schema import COLUMNS_MAX, StreamSchema
from pipeline_runtime.model.spec import Frozen
from pipeline_runtime.operators.connected import ConnectedOperator
from pipeline_runtime.operators.registry import (
    OperatorUnknown,
    Registry,
    mismatches,
    parameter_faults,
    params_schema,
)
from pipeline_runtime.operators.sdk import (
    DataFrameOperator,
    FileDescriber,
    Operator,
    SchemaMismatch,
    SourceOperator,
    ViewOperator,
)
from pipeline_runtime.planning.draft import DraftElement, DraftGroup, read_draft
from pipeline_runtime.planning.graph import connected, find_cycles, topological_order

_FIELD_SIZE = 50  # of a column in JSON, without its name and unit
_HINTS_MAX = 50
"""The limit for one validation. Looking for a similar name takes long, and thousands of names may be wrong.
"""


SCHEMAS_SIZE_MAX = 5_000_000
"""The most characters that the columns of all streams may take, about, when they are written as JSON. The
editor asks for them after each change, and each node keeps those of what it runs."""


class Validation(Frozen):
    faults: tuple[Fault, ...]
    schemas: dict[str, StreamSchema]  # "element.port" of every output whose schema is known

    @property
    def valid(self) -> bool:
        return not self.faults


def validate(
    document: PipelineDocument | Mapping[str, Any],
    registry: Registry,
    *,
    nodes: Mapping[str, str] | None = None,
    describe_file: FileDescriber | None = None,
) -> Validation:
    """Returns every fault of a document or draft.

    `nodes` maps the registered nodes to their sites; pins are not checked when it is None. `describe_file`
    returns the first bytes of an uploaded file, for sources that take their schema from it.
    """
    data = document.to_data() if isinstance(document, PipelineDocument) else document
    refused = refusals(data)
    if refused:
        return Validation(faults=tuple(refused), schemas={})
    check = _Check(registry, nodes, describe_file, *read_draft(data))
    check.faults.extend(form_faults(data))
    check.run()
    found = list(dict.fromkeys(check.faults))
    faults = [check.for_people(fault) for fault in found[:FAULTS_MAX]]
    if more := len(found) - len(faults):
        message = f"there are {more:,} more mistakes; they are shown when these are mended"
        faults.append(Fault(element=None, path="", message=message, code="invalid"))
    return Validation(faults=tuple(faults), schemas=check.schemas)


@dataclass
class _Check:
    """One run of the validation. Collects faults and schemas."""

    registry: Registry
    nodes: Mapping[str, str] | None
    describe_file: FileDescriber | None
    elements: list[DraftElement]
    groups: list[DraftGroup]
    faults: list[Fault] = field(default_factory=list)
    schemas: dict[str, StreamSchema] = field(default_factory=dict)
    types: dict[str, type[Operator]] = field(default_factory=dict)  # by element id
    operators: dict[str, Operator] = field(default_factory=dict)  # those with good parameters
    by_id: dict[str, DraftElement] = field(default_factory=dict)
    before: dict[str, list[str]] = field(default_factory=dict)  # element -> the elements that it reads
    together: dict[str, int] = field(default_factory=dict)  # element -> the index of its group
    cycles: list[tuple[str, ...]] = field(default_factory=list)
    hints: int = 0
    schemas_size: int = 0  # of all schemas so far, in characters

    def run(self) -> None:
        # When two elements have one id, references mean the first.
        for element in self.elements:
            if element.id:
                self.by_id.setdefault(element.id, element)
        for group in self.groups:
            for member in group.elements:
                self.together.setdefault(member, group.index)
        if not self.elements:
            self.report(None, "spec.elements", "the pipeline has no elements; add a source", "empty")
        self.check_ids()
        for element in self.elements:
            self.check_type(element)
        for element in self.elements:
            self.check_inputs(element)
            self.check_pin(element)
            self.check_apart(element)
        self.check_soles()
        self.check_cycles()
        self.propagate()
        self.check_groups()

    def report(
        self, element: str | None, path: str, message: str, code: str, instead: tuple[Instead, ...] = ()
    ) -> None:
        fault = Fault(element=element or None, path=path, message=message, code=code, instead=instead)
        self.faults.append(fault)

    def name(self, id: str) -> str:
        """Returns the name that users see; for an unknown element, its id in quotes."""
        element = self.by_id.get(id)
        if element is None:
            return f'"{id}"'
        operator = self.types.get(id)
        return element_name(id, element.type, element.title, operator.title if operator else None)

    def names(self, ids: Iterable[str]) -> list[str]:
        return [self.name(id) for id in ids]

    def group_name(self, group: DraftGroup) -> str:
        return group_name(group.title, self.names(group.elements))

    def for_people(self, fault: Fault) -> Fault:
        """Returns the fault with the titles of its element and its field."""
        operator = self.types.get(fault.element or "")
        inputs = [port.name for port in operator.inputs] if operator is not None else []
        schema = params_schema(operator) if operator is not None else None
        title = self.name(fault.element) if fault.element in self.by_id else ""
        place = place_words(fault.path, inputs, schema)
        message = fault.message if schema is None else with_titles(fault.message, schema)
        texts = {"path": fault.path, "message": message, "title": title, "place": place}
        cut: dict[str, str | None] = {name: short(text) for name, text in texts.items()}
        if fault.element is not None:
            cut["element"] = short(fault.element)
        return fault.model_copy(update=cut)

    def hint(self, name: str, known: Iterable[str]) -> str:
        self.hints += 1
        return did_you_mean(name, known) if self.hints <= _HINTS_MAX else ""

    def check_ids(self) -> None:
        counts = Counter(element.id for element in self.elements if element.id)
        for element in self.elements:
            if counts[element.id] > 1:
                message = f'{counts[element.id]} elements have the id "{element.id}"; each needs its own'
                self.report(element.id, element.path("id"), message, "duplicate_id")
        group_counts = Counter(group.id for group in self.groups if group.id)
        for group in self.groups:
            if group_counts[group.id] > 1:
                message = f'{group_counts[group.id]} groups have the id "{group.id}"'
                self.report(None, group.path("id"), message, "duplicate_id")
            if group.id and group.id in self.by_id:
                message = f'"{group.id}" is the id of an element; a group needs another one'
                self.report(group.id, group.path("id"), message, "group_id")

    def check_type(self, element: DraftElement) -> None:
        if not element.type:
            return  # a structural fault is reported already
        try:
            operator = self.registry.get(element.type)
        except OperatorUnknown as error:
            self.report(element.id, element.path("type"), str(error), "unknown_type")
            return
        first = self.by_id.get(element.id) is element
        if first:
            self.types[element.id] = operator
        faults = parameter_faults(operator, dict(element.params))
        for path, message, code in faults:
            self.report(element.id, element.path("params", path), message, code)
        if not faults and first:
            self.operators[element.id] = self.registry.create(
                element.type, element.params, self.describe_file
            )

    def check_inputs(self, element: DraftElement) -> None:
        operator = self.types.get(element.id)
        if operator is not None:
            ports = [port.name for port in operator.inputs]
            for port in element.inputs:
                if port not in ports:
                    known = f"it has {listed(ports)}" if ports else "it has no inputs"
                    message = f'{operator.title} has no input "{port}"{self.hint(port, ports)} ({known})'
                    self.report(element.id, element.path("inputs", port), message, "unknown_port")
            required = [port.name for port in operator.inputs if not port.optional]
            for port in required:
                if port not in element.inputs:
                    message = f'input "{port}" is not connected' if len(ports) > 1 else "nothing is connected"
                    self.report(element.id, element.path("inputs", port), message, "missing_input")
        for port, reference in element.inputs.items():
            self.check_reference(element, port, reference)

    def check_reference(self, element: DraftElement, port: str, reference: str) -> None:
        producer, output = parse_reference(reference)
        path = element.path("inputs", port)
        if producer not in self.by_id:
            message = f'there is no element "{producer}"{self.hint(producer, self.by_id)}'
            self.report(element.id, path, message, "unknown_element")
            return
        self.before.setdefault(element.id, []).append(producer)
        operator = self.types.get(producer)
        if operator is None:
            return
        outputs = [item.name for item in operator.outputs]
        if not outputs:
            message = f"{self.name(producer)} has no output to read from"
            self.report(element.id, path, message, "unknown_port")
        elif output not in outputs:
            message = f'{self.name(producer)} has no output "{output}"; it has {listed(outputs)}'
            self.report(element.id, path, message, "unknown_port")

    def check_pin(self, element: DraftElement) -> None:
        self.check_site(element)
        if element.node is None or self.nodes is None or element.node in self.nodes:
            return
        hint = self.hint(element.node, self.nodes)
        message = (
            f'there is no node "{element.node}"{hint} (registered: {listed(sorted(self.nodes)) or "none"})'
        )
        self.report(element.id, element.path("node"), message, "unknown_node")

    def check_site(self, element: DraftElement) -> None:
        if element.site is None:
            return
        if element.node is not None:
            message = f"is set to run on {element.node} and at {element.site}; choose one of them"
            self.report(element.id, element.path("site"), message, "node_and_site")
        elif self.nodes is not None and element.site not in (known := sorted(set(self.nodes.values()))):
            hint = self.hint(element.site, known)
            message = f'there is no site "{element.site}"{hint} (known: {listed(known) or "none"})'
            self.report(element.id, element.path("site"), message, "unknown_site")

    def check_apart(self, element: DraftElement) -> None:
        """Checks whom the element is to be kept apart from. Two elements may be pinned to one node all the
        same, since a pin follows where a user moves an element."""
        for index, other in enumerate(element.apart):
            if other not in self.by_id:
                message = f'must be apart from "{other}", which does not exist{self.hint(other, self.by_id)}'
                code = "unknown_element"
            elif other == element.id:
                message, code = "must be apart from itself; remove that", "apart_itself"
            elif element.id in self.together and self.together[element.id] == self.together.get(other):
                message = (
                    f"must be apart from {self.name(other)}, but runs as one with it; choose one of them"
                )
                code = "apart_together"
            else:
                continue
            self.report(element.id, element.path("apart", index), message, code)

    def check_soles(self) -> None:
        """Checks that no two elements have one name in the system that they connect to."""
        first: dict[tuple[str, ...], str] = {}
        for id, operator in self.operators.items():
            for sole in operator.sole() if isinstance(operator, ConnectedOperator) else ():
                if first.setdefault(sole.name, id) != id:
                    has_it = self.name(first[sole.name])
                    message = f"{sole.words} is that of {has_it} already; each element needs its own"
                    self.report(id, self.by_id[id].path(sole.path), message, "sole_name")

    def check_cycles(self) -> None:
        self.cycles = find_cycles(self.by_id, self.before)
        for cycle in self.cycles:
            element = self.by_id[cycle[0]]
            circle = " → ".join(self.names(cycle))
            message = f"the elements form a cycle: {circle}; remove one of these connections"
            self.report(element.id, element.path("inputs"), message, "cycle")

    def propagate(self) -> None:
        """Passes schemas along the edges. Behind a fault they are unknown, and no further fault is
        reported."""
        for id in topological_order(self.by_id, self.before):
            operator, element = self.operators.get(id), self.by_id[id]
            if operator is None:
                continue
            inputs: dict[str, StreamSchema] = {}
            needed = [port for port in operator.inputs if not port.optional or port.name in element.inputs]
            for port in needed:
                source = element.inputs.get(port.name)
                schema = self.schemas.get(".".join(parse_reference(source))) if source else None
                if schema is not None:
                    inputs[port.name] = schema
            if len(inputs) < len(needed):
                continue
            try:
                schema = operator.output_schema(inputs)
            except SchemaMismatch as error:
                for fault in mismatches(error):
                    path = element.path(fault.path)
                    self.report(id, path, fault.message, "schema", fault.instead)
                continue
            except Exception as error:
                message = f"{operator.title} failed on these parameters: {error!r}"
                self.report(id, element.path("params"), message, "operator_failed")
                continue
            if not self.is_too_large(element, schema):
                for output in operator.outputs:
                    self.schemas[f"{id}.{output.name}"] = schema

    def is_too_large(self, element: DraftElement, schema: StreamSchema) -> bool:
        """Returns and reports whether the stream has too many columns, by itself or with those before it."""
        count = len(schema.fields)
        if count > COLUMNS_MAX:
            message = (
                f"its rows have {count:,} columns; at most {COLUMNS_MAX:,} are possible:"
                " keep those that are needed"
            )
            self.report(element.id, element.path("params"), message, "too_many_columns")
            return True
        before = self.schemas_size
        self.schemas_size += sum(_FIELD_SIZE + len(f.name) + len(f.unit or "") for f in schema.fields)
        if self.schemas_size <= SCHEMAS_SIZE_MAX:
            return False
        if before <= SCHEMAS_SIZE_MAX:  # it is said once, where it is exceeded
            message = (
                f"up to here the streams of the pipeline have too many columns together, and this one has "
                f"{count:,}: keep only the needed ones before (Select / rename), or split the pipeline in two"
            )
            self.report(element.id, element.path("params"), message, "too_many_columns")
        return True

    def check_groups(self) -> None:
        group_of: dict[str, DraftGroup] = {}
        for group in self.groups:
            for index, member in enumerate(group.elements):
                path = group.path("elements", index)
                if member not in self.by_id:
                    message = f'there is no element "{member}"{self.hint(member, self.by_id)}'
                    self.report(None, path, message, "unknown_element")
                elif member in group_of:
                    group_name = self.group_name(group_of[member])
                    message = f"{self.name(member)} runs as one with others already ({group_name})"
                    self.report(member, path, message, "group_overlap")
                else:
                    group_of[member] = group
        for group in self.groups:
            members = [member for member in group.elements if group_of.get(member) is group]
            if members:
                self.check_group(group, members)
        self.check_group_cycles(group_of)

    def check_group(self, group: DraftGroup, members: list[str]) -> None:
        stateful = [m for m in members if m in self.types and self.types[m].stateful]
        if len(stateful) > 1:
            message = (
                "of elements that run as one, at most one may keep state; these do: "
                f"{listed_and(self.names(stateful))}"
            )
            self.report(stateful[1], group.path("elements"), message, "group_stateful")
        for member in members:
            if member in self.types and issubclass(self.types[member], ViewOperator):
                name = self.name(member)
                message = f"{name} is shown by the dashboard and runs on no node: take it out of the group"
                self.report(member, group.path("elements"), message, "group_view")
        ticking = [m for m in members if m in self.operators and self.operators[m].ticks_s() is not None]
        planned = [m for m in members if m in self.types and issubclass(self.types[m], DataFrameOperator)]
        if ticking and planned:
            message = (
                f"{self.name(ticking[0])} needs batches without rows, which Spark does not plan for "
                f"{self.name(planned[0])}: take one of them out of the group"
            )
            self.report(ticking[0], group.path("elements"), message, "group_ticks")
        if not connected(members, self.before):
            together = listed(self.names(members))
            message = f"elements that run as one must be connected; these are not: {together}"
            self.report(members[0], group.path("elements"), message, "group_disconnected")
        wanted = {m: (self.by_id[m].node, self.by_id[m].site) for m in members}
        pins = {
            m: f"on {node}" if node else f"at {site}" for m, (node, site) in wanted.items() if node or site
        }
        if len(set(pins.values())) > 1:
            where = listed(f"{self.name(member)} {place}" for member, place in pins.items())
            message = (
                f"elements that run as one run in one place, but these are set to run in several: {where}"
            )
            self.report(next(iter(pins)), group.path("elements"), message, "group_nodes")
        self.check_group_inputs(group, members)

    def check_group_inputs(self, group: DraftGroup, members: list[str]) -> None:
        """Checks that the group reads either one source element or topics. One gate cuts only one kind of
        input."""
        sources = [m for m in members if m in self.types and issubclass(self.types[m], SourceOperator)]
        topics = [m for m in members if m in self.types and self.types[m].external == "in"]
        inside = set(members)
        outside = [producer for m in members for producer in self.before.get(m, ()) if producer not in inside]
        if sources and (len(sources) > 1 or topics or outside):
            others = listed_and(self.names([*sources[1:], *topics, *outside]))
            message = (
                f"a group cannot have the source {self.name(sources[0])} and read {others} as well; "
                "run the source on its own, or leave the other input out of the group"
            )
            self.report(sources[0], group.path("elements"), message, "group_sources")

    def check_group_cycles(self, group_of: Mapping[str, DraftGroup]) -> None:
        cyclic = {id for cycle in self.cycles for id in cycle}
        vertex = {id: f"group {group_of[id].id}" if id in group_of else id for id in self.by_id}
        words = {
            vertex[id]: self.group_name(group_of[id]) if id in group_of else self.name(id)
            for id in self.by_id
        }
        before: dict[str, list[str]] = {}
        for id, producers in self.before.items():
            for producer in producers:
                # Edges inside one group, and edges on a cycle that is reported already, make no cycle of
                # groups.
                if vertex[id] != vertex[producer] and not (id in cyclic and producer in cyclic):
                    before.setdefault(vertex[id], []).append(vertex[producer])
        for cycle in find_cycles(dict.fromkeys(vertex.values()), before):
            group = next((g for g in self.groups if f"group {g.id}" in cycle), None)
            if group is None:
                continue
            circle = " → ".join(words[each] for each in cycle)
            message = (
                f"with these groups, data would flow in a cycle: {circle}; "
                "take the elements between into the group, or split it"
            )
            member = group.elements[0] if group.elements else None
            self.report(member, group.path("elements"), message, "group_cycle")
