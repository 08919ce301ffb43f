"""Metrics of Sparkplug B that a user has ticked, as parameters of MQTT in. Pure.

An edge node lies at `spBv1.0/<group>/+/<edge node>`, and a device of it at that and `/<device>`. A metric
lies there behind a #, which no id may have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pipeline_runtime.model.connectors import Found
from pipeline_runtime.model.paths import parse_path
from pipeline_runtime.model.schema import FieldType
from pipeline_runtime.operators.ticked import entries, new_columns

SPARKPLUG = "spBv1.0"
"""The first level of all topics of Sparkplug B."""
_FROM_MAX = 400
_EDGE_NODE, _DEVICE = 4, 5
"""The levels of a topic that name them."""


class Source(NamedTuple):
    """An edge node, or a device of one."""

    group: str
    node: str
    device: str = ""

    @property
    def path(self) -> str:
        return "/".join(filter(None, (SPARKPLUG, self.group, "+", self.node, self.device)))

    @property
    def titles(self) -> tuple[str, ...]:
        return tuple(filter(None, (f"{self.group}/{self.node}", self.device)))

    @property
    def topics(self) -> str:
        """Returns the topics of the whole edge node: only they tell which messages are missing."""
        return f"{Source(self.group, self.node).path}/#"

    def metric_path(self, name: str) -> str:
        return f"{self.path}#{name}"


def source_at(path: str) -> Source | None:
    """Returns the edge node or the device that lies there."""
    levels = path.split("/")
    if len(levels) not in (4, 5) or levels[0] != SPARKPLUG or levels[2] != "+":
        return None
    ids = (levels[1], *levels[3:])
    return Source(*ids) if all(ids) and not set("".join(ids)) & set("+#") else None


def metric_at(path: str) -> tuple[Source, str] | None:
    """Returns the metric that lies there: whose it is, and its name."""
    place, hash_, name = path.partition("#")
    source = source_at(place)
    return (source, name) if source is not None and hash_ and name else None


def metric_of(column: str, from_: str | None) -> str:
    """Returns the name of the metric that a column holds. A point in it leads nowhere; ["a.b"] is a.b too."""
    if from_ is None:
        return column
    steps = parse_path(from_)
    return steps[0] if len(steps) == 1 and isinstance(steps[0], str) else from_


def metrics(params: Mapping[str, Any], ticked: Sequence[Found]) -> dict[str, Any]:
    """Returns the parameters of MQTT in. Raises ValueError if other topics are ticked or read, too."""
    found = [(place, each) for each in ticked if (place := metric_at(each.path)) is not None]
    given = params.get("topics")
    topics = [each for each in given if isinstance(each, str) and each] if isinstance(given, list) else []
    if len(found) < len(ticked) or not all(each.startswith(f"{SPARKPLUG}/") for each in topics):
        raise ValueError(
            "an element reads metrics of Sparkplug B or other topics, not both; empty its topics first"
        )
    for (source, _), _ in found:
        if not any(_covers(each, source.topics) for each in topics):
            topics.append(source.topics)
    columns = entries(params, "columns", "name")
    known = {_known(each) for each in columns if each.get("level") is None}
    new = {
        name: ([*source.titles, *name.split("/")], each.holds, each.unit, _from(name))
        for (source, name), each in reversed(found)
        if name not in known
    }
    made = new_columns(columns, reversed(new.values()))
    made = [
        {name: value for name, value in entry.items() if name != "from" or value != entry["name"]}
        for entry in made
    ]
    levels = {entry.get("level") for entry in made}
    is_one = len(topics) == 1 and topics[0].endswith("/#") and source_at(topics[0][:-2]) is not None
    wanted = [] if is_one else [("edge node", _EDGE_NODE)]
    wanted += [("device", _DEVICE)] if any(source.device for (source, _), _ in found) else []
    for title, level in wanted:
        if level not in levels:
            made = new_columns(made, [([title], FieldType.STRING, "", {"level": level})])
    return {**params, "topics": topics, "payload": "sparkplug", "columns": made, "time": None}


def _known(entry: Mapping[str, Any]) -> str:
    name, from_ = str(entry["name"]), entry.get("from")
    try:
        return metric_of(name, str(from_) if from_ else None)
    except ValueError:  # a draft may be wrong
        return name


def _from(name: str) -> dict[str, str]:
    """Returns what says which metric a column holds. Raises ValueError if nothing can."""
    try:
        plain = metric_of("", name) == name
    except ValueError:
        plain = False
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    text = name if plain else f'["{escaped}"]'
    if len(text) > _FROM_MAX:
        raise ValueError(f"the name of a metric has more than {_FROM_MAX} letters: {name[:100]}…")
    return {"from": text}


def _covers(wide: str, narrow: str) -> bool:
    """Returns whether a topic with wildcards has all topics of another one."""
    inner = narrow.split("/")
    outer = wide.split("/")
    for place, level in enumerate(outer):
        if level == "#":
            return True
        if place >= len(inner) or inner[place] == "#" or level not in ("+", inner[place]):
            return False
    return len(inner) == len(outer)
