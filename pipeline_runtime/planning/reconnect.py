"""Decides where groups begin in streams that are new to them, when an upgrade connects elements differently.
Pure.

                                   the new reader begins
    A -> C       A -> N -> C       N in A's rows where C stopped in them; C at N's first row
    A -> B -> C  A -> C            C in A's rows where B stopped in them, once it has read B's to their end
    A -> B -> C  A -> N -> C       N in A's rows where B stopped in them; C at N's first row, once it has read
    B's
    A -> C       D -> C            with the rows that D writes from then on
    A            A -> N            at A's first row

By these rules no row that C depends on is lost or processed twice. A change that they do not cover is
refused.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from pipeline_runtime.model.names import listed_and, mention
from pipeline_runtime.model.spec import GroupSpec, InputStream
from pipeline_runtime.planning.graph import topological_order
from pipeline_runtime.planning.regroup import (
    LastRows,
    NewInput,
    NewSource,
    Regrouped,
    producer_of,
    regrouped,
)


class Reconnections(Regrouped):
    """What a new version groups or connects differently from what runs."""

    def of(self, group: str) -> tuple[NewInput, ...]:
        return tuple(item for item in self.inputs if item.group == group)

    def sources_of(self, group: str) -> tuple[NewSource, ...]:
        return tuple(item for item in self.sources if item.group == group)

    @property
    def givers(self) -> frozenset[str]:
        """The groups that have to report where they stopped, or that they have read a stream to its end."""
        return frozenset(item.giver for item in self.inputs if item.giver is not None) | {*self.ends}

    def next_to_end(self, groups: Collection[str]) -> tuple[str, ...]:
        """Returns the groups that may end now, of `groups`, which are all to end. A group has to wait while
        it still has to read to the end what another group of them writes."""
        waiting = {last.group for last in self.last_rows if last.writer in groups}
        return tuple(group for group in groups if group not in waiting)

    def in_order(self, groups: Iterable[str]) -> tuple[str, ...]:
        """Returns the groups so that each comes after the groups that it takes over from. Groups that would
        wait for each other are left out."""
        waits_for: dict[str, list[str]] = {}
        for item in self.inputs:
            if item.giver is not None and item.giver != item.group:
                waits_for.setdefault(item.group, []).append(item.giver)
        return topological_order(groups, waits_for)


def reconnections(
    old: Sequence[GroupSpec], new: Sequence[GroupSpec], left_over: Sequence[GroupSpec] = ()
) -> Reconnections:
    """Compares what runs with a new version.

    `left_over` holds groups of earlier versions, each with the inputs that it stopped reading and that no
    group has taken over since, and with the elements that run nowhere since.
    """
    other = regrouped(old, new, [spec for spec in left_over if spec.elements])
    if other.begins or other.refused:
        # Nothing else is connected differently then, or the change is refused.
        return Reconnections(**dict(other))
    before, after = _Graph([*old, *left_over]), _Graph(new)
    reads = {spec.group: _streams(spec) for spec in old}
    inputs: list[NewInput] = []
    refused: dict[str, str] = {}
    for group, streams in after.reads.items():
        for topic, stream in streams.items():
            if topic in reads.get(group, {}):
                continue
            item = _new_input(group, stream, before, after)
            if isinstance(item, NewInput):
                inputs.append(item)
            else:
                refused.setdefault(group, item)
    last_rows = [
        LastRows(group=group, stream=stream)
        for group, streams in reads.items()
        if group in after.reads
        for topic, stream in streams.items()
        if topic not in after.reads[group] and topic not in after.writers
    ]
    found = Reconnections(inputs=tuple(inputs), last_rows=tuple(last_rows))
    takers = [group for group in after.reads if group in before.reads and found.of(group)]
    for group in set(takers) - set(found.in_order(takers)):
        refused.setdefault(group, "it would wait for an element that waits for it: change one at a time")
    return found.model_copy(update={"refused": refused})


class _Graph:
    def __init__(self, specs: Sequence[GroupSpec]) -> None:
        self.reads: dict[str, dict[str, InputStream]] = {}  # group -> topic -> stream
        self.writers: dict[str, str] = {}  # topic -> group
        for spec in specs:
            self.reads.setdefault(spec.group, {}).update(_streams(spec))
            self.writers.update({stream.topic: spec.group for stream in spec.outputs if not stream.external})

    def feeds(self, group: str, other: str) -> bool:
        """Returns whether `other` reads a stream that `group` writes."""
        return any(self.writers.get(topic) == group for topic in self.reads.get(other, ()))

    def is_before(self, group: str, other: str) -> bool:
        """Returns whether rows of `group` reach `other`, directly or through other groups."""
        seen, frontier = {other}, [other]
        while frontier:
            for topic in self.reads.get(frontier.pop(), ()):
                writer = self.writers.get(topic)
                if writer == group:
                    return True
                if writer is not None and writer not in seen:
                    seen.add(writer)
                    frontier.append(writer)
        return False


def _streams(spec: GroupSpec) -> dict[str, InputStream]:
    return {stream.topic: stream for stream in spec.inputs if not stream.external}


def _new_input(group: str, stream: InputStream, before: _Graph, after: _Graph) -> NewInput | str:
    """Returns where the group begins in the stream, or why the change is refused."""
    topic, name = stream.topic, producer_of(stream)
    if topic in before.reads.get(group, {}):
        # the group reads again what it stopped reading
        return NewInput(group=group, stream=stream, giver=group)
    if topic not in before.writers:
        return NewInput(group=group, stream=stream, whole=True)
    readers = [other for other, streams in before.reads.items() if topic in streams]
    leaving = [other for other in readers if topic not in after.reads.get(other, {})]
    removed = [other for other in leaving if other not in after.reads]
    changed = [other for other in leaving if other in after.reads]
    swapped = next((other for other in changed if before.is_before(other, group)), None)
    if swapped is not None:
        names = f"it and {mention(swapped)}"
        return f"{names} change places, and rows between them would be lost: move one at a time"
    reached = _reached(group, before, after)
    replaced = [other for other in removed if any(before.is_before(other, at) for at in reached)]
    indirect = next((other for other in replaced if not _is_next_to(other, reached, before, after)), None)
    if indirect is not None:
        return (
            f"{mention(indirect)} and an element behind it are removed together, and rows between them "
            "would be lost: remove one at a time"
        )
    givers = [*replaced, *(other for other in changed if after.is_before(group, other))]
    if len(givers) > 1:
        stop = f"{listed_and([*map(mention, givers)])} stop reading {mention(name)} for it"
        return f"{stop}, each at another row: give each an element of its own"
    return NewInput(group=group, stream=stream, giver=givers[0] if givers else None)


def _reached(group: str, before: _Graph, after: _Graph) -> list[str]:
    """Returns the groups that ran before and that now depend on what `group` newly reads."""
    if group in before.reads:
        return [group]
    return [other for other in after.reads if other in before.reads and after.is_before(group, other)]


def _is_next_to(removed: str, reached: Sequence[str], before: _Graph, after: _Graph) -> bool:
    """Returns whether no other group lies between, in which rows of `removed` could still be on their way."""
    between = [
        other
        for other in before.reads
        if other not in after.reads
        and before.feeds(removed, other)
        and any(before.is_before(other, at) for at in reached)
    ]
    return not between and any(before.feeds(removed, at) for at in reached)
