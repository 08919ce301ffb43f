"""Decides what happens when an upgrade changes which elements run together. Pure.

A group whose elements change ends, and so does every group that shares an element with a group to come. The
groups that hold their elements from then on begin. Each element continues exactly where it stopped:

    what it reads                                 begins
    a topic that it read before                   where its former group stopped in it
    a recording, a generator                      where its former group stopped in it
    a stream that it read inside its group,       at the end of the topic, which no group writes meanwhile
    and that is a topic from now on
    a topic that becomes a stream inside its      after its former group has read the topic to the end, so
    group                                         the writer ends first, and groups end one after another

State belongs to a group. So an element with state begins without it, and a file that was written stays where
it is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from pipeline_runtime.model.ids import document_group, numbered_group
from pipeline_runtime.model.names import listed_and, mention
from pipeline_runtime.model.spec import ElementSpec, Frozen, GroupSpec, InputStream

ALONE = "change the groups first, and the rest afterwards"


class NewInput(Frozen):
    """A stream that `group` did not read before."""

    group: str
    stream: InputStream
    giver: str | None = None  # the group that read it before; `group` begins where that one stopped
    whole: bool = False  # begins at the first row, since the writer is new too
    behind: bool = False  # begins at the end, since earlier rows reached its elements in another way


class NewSource(Frozen):
    """A source element that moves to another group and continues where `giver` stopped."""

    group: str
    element: str
    giver: str


class LastRows(Frozen):
    """A stream that `group` has to read to its end, because no group writes it any more, or not for
    `group`."""

    group: str
    stream: InputStream
    # the group that ends first, when both end and their elements run together from then on
    writer: str | None = None
    taker: str | None = None  # the group that holds those elements from then on


class Regrouped(Frozen):
    """What a new version groups differently from what runs."""

    # groups that run and have to end, since their elements will run in other groups
    ends: tuple[str, ...] = ()
    begins: tuple[str, ...] = ()  # the groups that those elements will run in
    inputs: tuple[NewInput, ...] = ()
    sources: tuple[NewSource, ...] = ()
    last_rows: tuple[LastRows, ...] = ()
    refused: Mapping[str, str] = {}  # group -> why the change is refused


def named(
    planned: Iterable[GroupSpec], running: Iterable[GroupSpec], spent: Collection[str]
) -> tuple[GroupSpec, ...]:
    """Returns the planned groups under their names in this deployment.

    A group with the same elements as before is the same group and keeps its name. Any other group gets a name
    that no group of this deployment ever had, since a journal, checkpoints and transactions are found by it.
    `spent` holds the names of groups that are gone.
    """
    members = {spec.group: elements_of(spec) for spec in running}
    taken = {*members, *spent}

    def name(spec: GroupSpec) -> str:
        for group, elements in members.items():
            if elements == elements_of(spec) and document_group(group) == spec.group:
                return group
        number = 1
        while (group := numbered_group(spec.group, number)) in taken:
            number += 1
        return group

    return tuple(spec.model_copy(update={"group": name(spec)}) for spec in planned)


def elements_of(spec: GroupSpec) -> frozenset[str]:
    return frozenset(element.id for element in spec.elements)


def regrouped(
    old: Sequence[GroupSpec], new: Sequence[GroupSpec], left_over: Sequence[GroupSpec]
) -> Regrouped:
    """Compares what runs with a new version.

    `left_over` holds groups that an upgrade ended before it failed, with the elements that do not run since.
    """
    runs = {spec.group: spec for spec in old}
    holder = {element.id: spec for spec in (*left_over, *old) for element in spec.elements}
    begins = [spec for spec in new if _is_other(spec, runs, holder)]
    shared = {holder[id].group for spec in begins for id in elements_of(spec) if id in holder}
    staying = {id for spec in new for id in elements_of(spec)}
    stranded = [spec.group for spec in left_over if not elements_of(spec) <= staying]
    refused = dict.fromkeys(
        stranded, "an upgrade that failed has stopped it: deploy a version that contains it"
    )
    if not begins:
        return Regrouped(refused=refused)
    inputs: list[NewInput] = []
    sources: list[NewSource] = []
    last_rows: list[LastRows] = []
    rest = _rest_differs(old, new, shared, {spec.group for spec in begins})
    if not {id for spec in old if spec.group in shared for id in elements_of(spec)} <= staying:
        rest = f"an element of a group is removed at the same time: {ALONE}"
    for spec in begins:
        found = _Beginning(spec, holder, runs)
        inputs += found.inputs
        sources += found.sources
        last_rows += found.last_rows
        if why := found.refused or rest:
            refused[spec.group] = why
    return Regrouped(
        ends=tuple(spec.group for spec in old if spec.group in shared),
        begins=tuple(spec.group for spec in begins),
        inputs=tuple(inputs),
        sources=tuple(sources),
        last_rows=tuple(last_rows),
        refused=refused,
    )


def _is_other(spec: GroupSpec, runs: Mapping[str, GroupSpec], holder: Mapping[str, GroupSpec]) -> bool:
    """Returns whether the group holds elements that ran and is itself a new group."""
    if not any(id in holder for id in elements_of(spec)):
        return False
    return spec.group not in runs or elements_of(runs[spec.group]) != elements_of(spec)


def _rest_differs(
    old: Sequence[GroupSpec], new: Sequence[GroupSpec], ends: Collection[str], begins: Collection[str]
) -> str | None:
    """Returns why other changes at the same time are refused, or None if there are none. These rules lose no
    row only when nothing else changes."""
    before = {spec.group: _topics(spec) for spec in old if spec.group not in ends}
    after = {spec.group: _topics(spec) for spec in new if spec.group not in begins}
    return (
        None
        if before == after
        else f"others are added, removed or connected differently at the same time: {ALONE}"
    )


def _topics(spec: GroupSpec) -> set[str]:
    return {stream.topic for stream in spec.inputs}


class _Beginning:
    """Decides for one new group where it begins in everything that it reads, or why it cannot begin."""

    def __init__(
        self, spec: GroupSpec, holder: Mapping[str, GroupSpec], runs: Mapping[str, GroupSpec]
    ) -> None:
        self._spec = spec
        self._holder = holder
        self._runs = runs
        self.inputs: list[NewInput] = []
        self.sources: list[NewSource] = []
        self.last_rows: list[LastRows] = []
        self.refused = self._other_elements()
        if self.refused is None:
            self.refused = self._outer_inputs() or self._inner_inputs()
            self._sources()

    def _other_elements(self) -> str | None:
        for element in self._spec.elements:
            held = self._holder.get(element.id)
            if held is None:
                name = mention(element.id)
                return f"{name} is new in the group, and a running group keeps its elements: {ALONE}"
            if element_of(held, element.id).inputs != element.inputs:
                return f"{mention(element.id)} is connected differently at the same time: {ALONE}"
        return None

    def _outer_inputs(self) -> str | None:
        spec = self._spec
        for topic, stream in {stream.topic: stream for stream in spec.inputs}.items():
            readers = [each.consumer for each in spec.inputs if each.topic == topic]
            givers = {
                self._holder[id].group if _reads(self._holder[id], id, topic) else None for id in readers
            }
            if len(givers) > 1:
                read = f"{listed_and([*map(mention, readers)])} read {mention(producer_of(stream))}"
                return (
                    f"{read} at different rows, and as one group they would read it at the same row: "
                    "let them run separately"
                )
            [giver] = givers
            self.inputs.append(NewInput(group=spec.group, stream=stream, giver=giver, behind=giver is None))
        return None

    def _inner_inputs(self) -> str | None:
        """Decides about streams that were topics before and now stay inside the group. Returns why it is
        refused, or None."""
        inner = elements_of(self._spec)
        for element in self._spec.elements:
            held = self._holder[element.id]
            for stream in held.inputs:
                producer = producer_of(stream)
                comes = stream.consumer == element.id and stream.source in element.inputs.values()
                if not comes or producer not in inner:
                    continue
                writer = self._holder[producer].group
                if held.group not in self._runs and writer in self._runs:
                    return (
                        f"{mention(element.id)} has stopped before it read everything that "
                        f"{mention(producer)} has given it: deploy the former version first"
                    )
                self.last_rows.append(
                    LastRows(group=held.group, stream=stream, writer=writer, taker=self._spec.group)
                )
        return None

    def _sources(self) -> None:
        external = {stream.consumer for stream in self._spec.inputs if stream.external}
        for element in self._spec.elements:
            if not element.inputs and element.id not in external:
                giver = self._holder[element.id].group
                self.sources.append(NewSource(group=self._spec.group, element=element.id, giver=giver))


def _reads(held: GroupSpec, id: str, topic: str) -> bool:
    """Returns whether the element read the topic from outside its group."""
    return any(stream.consumer == id and stream.topic == topic for stream in held.inputs)


def element_of(group: GroupSpec, id: str) -> ElementSpec:
    return next(element for element in group.elements if element.id == id)


def producer_of(stream: InputStream) -> str:
    return stream.source.partition(".")[0]
