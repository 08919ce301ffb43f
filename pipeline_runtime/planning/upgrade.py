"""Compares a new version of a pipeline with what runs, element by element. Nothing is changed here. Pure.

An upgrade in place keeps every element's state: its group stops after the running batch and starts again from
its local state with the new parameters. So a parameter may change only if it shapes neither the state nor
what was written outside. If only the state is in the way, the element can begin without it ("restart"),
provided that the user agrees to that loss. Elements are added and removed as whole groups. A group that stays
keeps its elements, and may read other streams than before (`reconnect`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from itertools import count
from typing import Any, Literal

from pipeline_runtime.model.names import listed_and, mention, with_names
from pipeline_runtime.model.schema import StreamSchema
from pipeline_runtime.model.spec import ElementSpec, Frozen, GroupSpec
from pipeline_runtime.operators.registry import Registry
from pipeline_runtime.operators.sdk import (
    DataFrameOperator,
    Operator,
    OtherColumns,
    SinkOperator,
    SourceOperator,
)
from pipeline_runtime.planning.plan import topics
from pipeline_runtime.planning.reconnect import Reconnections, reconnections
from pipeline_runtime.planning.regroup import NewInput, element_of, elements_of, producer_of

_VALUE_LENGTH_MAX = 30
_ID_STEM_MAX = 30
_UNITS = {"s": "s", "ms": "ms", "us": "µs", "bytes": "bytes", "percent": "%"}
_UNIT = re.compile(rf"(.+)_({'|'.join(_UNITS)})")


class ElementChange(Frozen):
    element: str
    change: Literal["unchanged", "retuned", "upgraded", "restart", "incompatible", "added", "removed"]
    reason: str | None = None  # what changed, or what prevents the change
    path: str | None = None  # the path of the parameter that prevents the change
    loses: str | None = None  # what part of its state is lost, with "restart" and "removed"
    instead: str | None = None  # an id that would do, if its own was that of an element that was removed
    view: bool = False  # only the dashboard shows it: no node runs it, and it keeps nothing


class GroupChanges(Frozen):
    """Groups in the order of the specs that were compared."""

    added: tuple[GroupSpec, ...] = ()
    changed: tuple[GroupSpec, ...] = ()  # as they will be; they have to be started again
    removed: tuple[GroupSpec, ...] = ()  # as they are now


def element_changes(
    old: Sequence[GroupSpec],
    new: Sequence[GroupSpec],
    registry: Registry,
    gone: Collection[str] = (),
    left_over: Sequence[GroupSpec] = (),
    names: Mapping[str, str] = {},
) -> tuple[ElementChange, ...]:
    """Returns one change for each element that a node runs, in the new version's order. Removed elements come
    last.

    `gone` holds ids of groups and elements that were removed from this deployment before. Their streams,
    journals and checkpoints had these names, so nothing else may get them. `left_over` is explained at
    `reconnections`. `names` maps element ids to the names that users see.
    """
    before = {element.id: group for group in (*left_over, *old) for element in group.elements}
    after = {element.id: group for group in new for element in group.elements}
    connected = reconnections(old, new, left_over)
    found = [
        _change(id, before[id], group, connected, registry)
        if id in before
        else _added(id, group, old, before, after, gone, connected)
        for id, group in after.items()
    ]
    staying = {group.group for group in new}
    removed = [
        _removed(
            id,
            group,
            group.group in staying or any(each.id in after for each in group.elements),
            connected.refused.get(group.group),
            registry,
        )
        for id, group in before.items()
        if id not in after
    ]
    return tuple(
        change.model_copy(update={"reason": with_names(change.reason, names)}) if change.reason else change
        for change in (*found, *removed)
    )


def group_changes(old: Sequence[GroupSpec], new: Sequence[GroupSpec]) -> GroupChanges:
    """Compares group by group, whether or not the upgrade is allowed. A group of which only the pace changes
    is not listed: it takes the new pace over while it runs."""
    versions, staying = {group.group: group.version for group in old}, {group.group for group in new}
    return GroupChanges(
        added=tuple(group for group in new if group.group not in versions),
        changed=tuple(group for group in new if versions.get(group.group, group.version) != group.version),
        removed=tuple(group for group in old if group.group not in staying),
    )


def obsolete_topics(old: Sequence[GroupSpec], new: Sequence[GroupSpec]) -> tuple[str, ...]:
    """Returns the names of the topics that Fogline created for `old` and that `new` does not use."""
    needed = {topic.name for group in new for topic in topics(group)}
    return tuple(topic.name for group in old for topic in topics(group) if topic.name not in needed)


def _added(
    id: str,
    new: GroupSpec,
    old: Sequence[GroupSpec],
    before: Collection[str],
    after: Collection[str],
    gone: Collection[str],
    connected: Reconnections,
) -> ElementChange:
    reused = next((name for name in (id, new.group) if name in gone), None)
    if reused is not None:
        reason = (
            f"an element or group with the id {reused} was removed while the pipeline ran, and its data "
            "would be taken for the new one's: give the new one another id"
        )
        instead = _free_id(id, {*gone, *before, *after}) if id in gone else None
        return ElementChange(element=id, change="incompatible", reason=reason, instead=instead)
    joins = any(group.group == new.group for group in old)
    if joins or any(element.id in before for element in new.elements):
        reason = (
            "it is new in a group that runs, and a group that runs keeps its elements: let it run by itself"
        )
        return ElementChange(element=id, change="incompatible", reason=reason)
    if new.group in connected.refused:
        return ElementChange(element=id, change="incompatible", reason=connected.refused[new.group])
    taken = [_begins(item) for item in _read_by(id, new, connected) if item.giver is not None]
    return ElementChange(element=id, change="added", reason="; ".join(taken) or None)


def _free_id(id: str, taken: Collection[str]) -> str:
    """Returns an id that begins as this one, and that nothing has or had."""
    stem = re.sub(r"-\d+$", "", id)[:_ID_STEM_MAX].rstrip("-") or "element"
    return next(free for number in count(2) if (free := f"{stem}-{number}") not in taken)


def _removed(
    id: str, old: GroupSpec, others_stay: bool, refused: str | None, registry: Registry
) -> ElementChange:
    if others_stay:
        refused = "it was removed from a group that goes on, and a group that runs keeps its elements"
    if refused is not None:
        return ElementChange(element=id, change="incompatible", reason=refused)
    operator = registry.get(element_of(old, id).type)
    return ElementChange(element=id, change="removed", loses=operator.keeps if operator.stateful else None)


def _change(
    id: str, old: GroupSpec, new: GroupSpec, connected: Reconnections, registry: Registry
) -> ElementChange:
    def incompatible(reason: str, path: str | None = None) -> ElementChange:
        return ElementChange(element=id, change="incompatible", reason=reason, path=path)

    def without_its_state(reason: str, path: str | None = None) -> ElementChange:
        if not _can_begin_fresh(operator):
            return incompatible(reason, path)
        return ElementChange(element=id, change="restart", reason=reason, path=path, loses=operator.keeps)

    was, is_ = element_of(old, id), element_of(new, id)
    regrouped = new.group in connected.begins
    graph = _graph_difference(old, new, was, is_, regrouped, registry) or connected.refused.get(new.group)
    if graph is not None:
        return incompatible(graph)
    operator = registry.get(is_.type)
    if regrouped and (operator.stateful or issubclass(operator, SinkOperator)):
        return without_its_state(
            f"{_together(id, old, new)}, and {_kept(operator)} belongs to the group that it runs in"
        )
    differing = {
        key for key in was.params.keys() | is_.params.keys() if was.params.get(key) != is_.params.get(key)
    }
    for key in sorted(differing & _shaping(operator, differing)):
        changed = _described(was.params, is_.params, differing)
        return without_its_state(f"{changed}, which shapes {_kept(operator)}", f"params.{key}")
    if _keeps(operator):
        for port, source in is_.inputs.items():
            before, now = old.schemas.get(was.inputs[port]), new.schemas.get(source)
            if not _still_fits(before, now, operator.columns_may_change(is_.params)):
                return without_its_state(
                    f"the rows at its port {port} have other columns now, which shape {_kept(operator)}"
                )
    said = [_described(was.params, is_.params, differing)] if differing else []
    if regrouped:
        said.append(f"{_together(id, old, new)}, and goes on where it stands")
    else:
        said += [_begins(item) for item in _read_by(id, new, connected)]
    if said:
        return ElementChange(element=id, change="upgraded", reason="; ".join(said))
    if old.version == new.version:
        retuned = _retuned(old, new)
        return ElementChange(element=id, change="retuned" if retuned else "unchanged", reason=retuned)
    if len(new.elements) > 1 or old.schemas != new.schemas:
        reason = "it is started again, because its group has changed"
    elif _keeps(operator):
        return without_its_state(f"its operator was updated, and may read {_kept(operator)} differently")
    else:
        reason = "its operator was updated"
    return ElementChange(element=id, change="upgraded", reason=reason)


def _together(id: str, old: GroupSpec, new: GroupSpec) -> str:
    """Returns which other elements it runs with from then on."""
    joins = listed_and([mention(each.id) for each in new.elements if each.id not in elements_of(old)])
    parts = listed_and([mention(each.id) for each in old.elements if each.id not in elements_of(new)])
    if len(new.elements) == 1 and parts:
        return "it now runs by itself"
    if joins and parts:
        return f"it now runs together with {joins}, and no longer with {parts}"
    if joins:
        return f"it now runs together with {joins}"
    return f"it no longer runs together with {parts}" if parts else "it begins as another group"


def _graph_difference(
    old: GroupSpec,
    new: GroupSpec,
    was: ElementSpec,
    is_: ElementSpec,
    regrouped: bool,
    registry: Registry,
) -> str | None:
    if was.type != is_.type:
        return f"its type was {was.type} and is {is_.type}"
    if regrouped:
        return None  # its query is a new one, with streams of its own
    streams = [[(stream.topic, stream.partitions) for stream in spec.outputs] for spec in (old, new)]
    if streams[0] != streams[1]:
        # Spark's query would read its source a different number of times, and would then refuse its own
        # checkpoint.
        return "its group has other output streams than before"
    others = _keeps(registry.get(is_.type)) and was.inputs.keys() != is_.inputs.keys()
    if _inner_inputs(old, was) != _inner_inputs(new, is_) or others:
        return "its inputs are connected differently inside its group"
    keeps = any(_keeps(registry.get(element.type)) for element in new.elements)
    if keeps and begins_another_query(old, new, registry):
        counts = _counts(old, new)
        return (
            f"its group read {counts[0]} streams of other groups, and would now read {counts[1]}, for which"
            " Spark cannot go on from the state that it keeps of the group"
        )
    return None


def begins_another_query(old: GroupSpec, new: GroupSpec, registry: Registry) -> bool:
    """Returns whether Spark's own checkpoint is of no use to a group that goes on.

    Spark plans the batches of a group with a DataFrame of a user's, and reads each of its streams for itself.
    So the group cannot read more or fewer streams of other groups than before. A group without state starts a
    fresh query where it stands, and loses nothing. Any other such group is refused.
    """
    counts = _counts(old, new)
    is_planned = any(issubclass(registry.get(element.type), DataFrameOperator) for element in new.elements)
    return is_planned and counts[0] != counts[1]


def _counts(*groups: GroupSpec) -> list[int]:
    return [len({stream.topic for stream in group.inputs}) for group in groups]


def _inner_inputs(group: GroupSpec, element: ElementSpec) -> dict[str, str]:
    """Returns the element's ports that another element of its group feeds."""
    outside = {stream.source for stream in group.inputs}
    return {port: source for port, source in element.inputs.items() if source not in outside}


def _read_by(id: str, group: GroupSpec, connected: Reconnections) -> list[NewInput]:
    read = set(element_of(group, id).inputs.values())
    return [item for item in connected.of(group.group) if item.stream.source in read]


def _begins(item: NewInput) -> str:
    name = mention(producer_of(item.stream))
    if item.whole:
        return f"it now reads {name}, from its first row"
    if item.giver is None:
        return f"it now reads {name}, from the next row on"
    stopped = "it stopped before" if item.giver == item.group else f"{mention(item.giver)} stops"
    return f"it now reads {name}, from the row at which {stopped}"


def _keeps(operator: type[Operator]) -> bool:
    """Returns whether the operator keeps anything that a new parameter could make useless."""
    return operator.stateful or _is_outside(operator)


def _still_fits(before: StreamSchema | None, now: StreamSchema | None, other: OtherColumns) -> bool:
    """Returns whether what an element keeps fits an input with other columns."""
    if before == now or other == "any":
        return True
    if other == "none" or before is None or now is None or before.key != now.key:
        return False
    return all(now.field(field.name) == field for field in before.fields)


def _can_begin_fresh(operator: type[Operator]) -> bool:
    """Returns whether the operator can begin without its state. A source would repeat rows and a sink would
    tear its output, so these cannot."""
    return operator.stateful and not _is_outside(operator)


def _is_outside(operator: type[Operator]) -> bool:
    return issubclass(operator, SourceOperator | SinkOperator) or operator.external is not None


def _shaping(operator: type[Operator], differing: set[str]) -> set[str]:
    if not _keeps(operator):
        return set()
    return differing if operator.state_params is None else set(operator.state_params)


def _kept(operator: type[Operator]) -> str:
    if issubclass(operator, SourceOperator) or operator.external == "in":
        return "what it has read so far"
    if issubclass(operator, SinkOperator) or operator.external == "out":
        return "what it has written so far"
    return "the state that it keeps"


def _described(was: Mapping[str, Any], is_: Mapping[str, Any], differing: set[str]) -> str:
    return ", ".join(_difference(key, was.get(key), is_.get(key)) for key in sorted(differing))


def _difference(key: str, was: Any, is_: Any) -> str:
    """Returns the change in the words of the form: `size_s` 1.0 and 2.0 become "Size 1 s to 2 s"."""
    found = _UNIT.fullmatch(key)
    stem, unit = (found[1], f" {_UNITS[found[2]]}") if found else (key, "")
    title = stem.replace("_", " ").capitalize()
    shown = [_shown(value) + (unit if isinstance(value, int | float) else "") for value in (was, is_)]
    if max(map(len, shown)) > _VALUE_LENGTH_MAX:
        return f"{title} changed"
    return f"{title} {shown[0]} to {shown[1]}"


def _retuned(old: GroupSpec, new: GroupSpec) -> str | None:
    was, is_ = old.pace.latency_ms, new.pace.latency_ms
    return f"Latency target {was} ms to {is_} ms" if was != is_ else None


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    return "none" if value is None else value if isinstance(value, str) else json.dumps(value)
