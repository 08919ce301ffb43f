"""Says what is wrong now. Pure: takes nodes and pipelines as the dashboard shows them, and returns lines for
people.

A line stays exactly as long as its problem lasts. Earlier problems are in the events.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set

from pipeline_runtime.model.names import listed_and, sentence
from webapp.alarms.schemas import Alarm
from webapp.backends.control_state import BLIND, CLOCK, ControlState
from webapp.monitoring.schemas import AttentionLine, LiveElement, PipelineItem, Severity
from webapp.nodes.schemas import Node
from webapp.placements.schemas import ElementStatus
from webapp.policies.schemas import Standing

ALARMS_MAX = 20
"""How many alarms have a line of their own."""
ALARM_SEVERITIES: Mapping[str, Severity] = {"critical": "error", "warning": "warning", "info": "info"}
HELD = ("java-ended-twice", "nodes-fell-silent")
"""The errors of elements that wait until a person asks for them again, which a restoration does."""


def attention(
    nodes: Iterable[Node],
    pipelines: Iterable[PipelineItem],
    elements: Mapping[str, list[LiveElement]],
    control: ControlState,
    advice: Iterable[tuple[str, Standing]] = (),
    alarms: Iterable[Alarm] = (),
) -> list[AttentionLine]:
    """Returns lines in the form of events. Alarms come first, then control, then nodes, since an element's
    problem often follows from theirs.

    `advice` is what policies advise, with their names. `alarms` are those that are open, the worst first.
    """
    nodes, pipelines = list(nodes), list(pipelines)
    titles = {item["name"]: item["title"] for item in pipelines}
    waiting: dict[str, set[str]] = {}  # node that is not up -> what it has to run
    restored: dict[str, set[str]] = {}  # node that had it -> what is being restored on another one
    by_clock: dict[str, list[str]] = {}  # node -> what of it goes by its clock
    for pipeline, items in elements.items():
        whose = titles.get(pipeline, pipeline)
        for item in items:
            if item["by_clock"] and item["node"]:
                by_clock.setdefault(item["node"], []).append(f"{item['title']} of {whose}")
            if item["status"] in ("silent", "restoring"):
                waiting.setdefault(item["node"], set()).add(f"{item['group_title']} of {whose}")
            if item["status"] == "restoring":
                for former in {copy["node"] for copy in item["replicas"]} - {item["node"]}:
                    restored.setdefault(former, set()).add(f"{item['group_title']} of {whose}")
    found = [*_of_alarms(alarms), *_of_control(control, nodes)]
    for node in nodes:
        # While control hears no node, only those that were silent before are known to be.
        if control.hears or node["silent_at"]:
            found += _of_node(
                node,
                sorted(waiting.get(node["name"], ())),
                sorted(restored.get(node["name"], ())),
                sorted(by_clock.get(node["name"], ())),
            )
    up = {node["name"] for node in nodes if node["up"]}
    found += [line for item in pipelines for line in _of_pipeline(item, elements.get(item["name"], []), up)]
    # By measurements, so nothing is known about nodes that are not heard now.
    return found + [_of_policy(name, said, titles) for name, said in advice if control.hears]


def _of_alarms(alarms: Iterable[Alarm]) -> Iterator[AttentionLine]:
    """Leaves out silenced alarms: whoever silenced an alarm knows of it."""
    told = [alarm for alarm in alarms if alarm["status"] in ("raised", "acknowledged")]
    for alarm in told[:ALARMS_MAX]:
        text = alarm["message"]
        if alarm["status"] == "acknowledged":
            text += f" {alarm['acknowledged_by']} knows of it."
        line = _line(
            "alarm.raised",
            text,
            alarm["raised_at"],
            ALARM_SEVERITIES[alarm["severity"]],
            pipeline=alarm["pipeline"],
            element=alarm["element"],
            node=alarm["node"],
        )
        yield {**line, "alarm": alarm["id"]}
    if len(told) > ALARMS_MAX:
        more = len(told) - ALARMS_MAX
        yield _line("alarm.more", f"There are {more} more alarms. The page Alarms has all.", None)


def _of_control(control: ControlState, nodes: list[Node]) -> Iterator[AttentionLine]:
    if control.away is not None:
        heard = max((node["last_seen_at"] for node in nodes if node["last_seen_at"]), default=None)
        yield _line("control.away", control.away, heard, "error")
    for trouble in control.troubles:
        severity: Severity = "warning" if trouble["kind"] == BLIND else "error"
        yield _line(trouble["kind"], trouble["message"], trouble["since"], severity)


def _of_node(
    node: Node, waiting: list[str], restored: list[str], by_clock: list[str]
) -> Iterator[AttentionLine]:
    """Returns what is wrong with a node. `waiting`: the elements that it has to run and does not run.
    `restored`: the elements that other nodes are taking over. `by_clock`: the elements that go by its
    clock."""
    name = node["name"]
    if not node["up"]:
        # A node that was stopped on purpose and has nothing to run is no problem.
        if waiting or node["silent_at"]:
            what = "does not answer" if node["silent_at"] else "was stopped"
            follows = (
                f"It should run {', '.join(waiting)}: start it again, or restore these on another node."
                if waiting
                else f"On other nodes, this is being restored: {', '.join(restored)}."
                if restored
                else "It has nothing to run. Start it again, or remove it if it will not come back."
            )
            at = node["silent_at"] or node["last_seen_at"]
            yield _line(
                "node.silent", f"{name} {what}. {follows}", at, "error" if waiting else "warning", node=name
            )
        return
    for alert in node["alerts"]:
        text = f"{name}: {alert['message']}"
        if alert["message"].startswith(CLOCK):
            text += _suffering(by_clock)
        yield _line("node.alert", text, alert["since"], node=name)
    if node["drain_blocked"]:
        why = "is being drained" if node["draining_since"] else "is leaving"
        text = f"{name} {why}, and these elements cannot move now: {node['drain_blocked']}"
        if node["leaving_until"]:
            text += (
                " They stop with the node, and stand still until it is started again or they are restored on"
                " another node."
            )
        yield _line("node.drain_waits", text, node["draining_since"], node=name)


def _suffering(by_clock: list[str]) -> str:
    """Returns which elements a wrong clock of their node harms."""
    if not by_clock:
        return " No element there goes by its clock."
    goes, rows = ("goes", "its rows") if len(by_clock) == 1 else ("go", "their rows")
    return (
        f" {listed_and(by_clock)} {goes} by it: {rows} have wrong times, and windows and joins that read them"
        " count them wrongly or take the rows of others for late."
    )


def _of_pipeline(
    pipeline: PipelineItem, elements: list[LiveElement], up: Set[str]
) -> Iterator[AttentionLine]:
    """Returns what is wrong with a pipeline. `up`: the nodes that control hears. Leaves out elements of other
    nodes: their nodes have a line."""
    name, title = pipeline["name"], pipeline["title"]
    if pipeline["status"] == "failed":
        text = f"{title} was not deployed: {pipeline['message']}"
        yield _line("pipeline.deploy_failed", text, None, "error", pipeline=name)
        return
    if pipeline["upgrade_failed"]:
        failed = pipeline["upgrade_failed"]
        text = f"{title} was not upgraded: {failed['message']}"
        yield _line("pipeline.upgrade_failed", text, failed["at"], "error", pipeline=name)
    groups: dict[str, LiveElement] = {}  # by its first element
    for item in elements:
        groups.setdefault(item["group"], item)
    for item in groups.values():
        error = item["error"]
        if item["status"] == "failed" and error is not None:
            what = f"{sentence(error['message'])} {error['next']}"
            text = f"{item['group_title']} has failed on {item['node']}: {what}"
            line = _line(
                "element.failed",
                text,
                error["at"],
                "error",
                pipeline=name,
                element=item["id"],
                node=item["node"],
            )
            others = sorted(up - {item["node"]})
            if others and error.get("code") in HELD:
                line["restore_to"] = others[0]
            yield line
    stalled: dict[str, list[LiveElement]] = {}
    for item in groups.values():
        if item["status"] == "stalled" and item["error"] is not None:
            stalled.setdefault(item["error"]["message"] or "", []).append(item)
    for why, items in stalled.items():
        text = f"{listed_and([item['group_title'] for item in items])} of {title}: {why}"
        at = min((item["error"]["at"] or "" for item in items if item["error"] is not None), default="")
        yield _line("element.stands", text, at or None, pipeline=name, element=items[0]["id"])
    for status, meanwhile in _STANDS:
        still = [item for item in groups.values() if item["status"] == status and item["node"] in up]
        if still:
            names = listed_and([item["group_title"] for item in still])
            one = len(still) == 1 and " and " not in names  # a group may be called by its elements
            verb, them = ("does", "it is") if one else ("do", "they are")
            text = f"{names} of {title} {verb} not process now: {them} {meanwhile}."
            yield _line("element.stands", text, None, pipeline=name, element=still[0]["id"])
    late = [item for item in groups.values() if item["status"] == "lagging"]
    if late:
        names = listed_and([item["group_title"] for item in late])
        text = f"{names} of {title} cannot keep up: rows wait for longer than they should."
        yield _line("element.lagging", text, None, pipeline=name, element=late[0]["id"])
    for item in elements:
        if item["dead_letters_open"]:
            yield _line(
                "element.dead_letters", _letters(item, title), None, pipeline=name, element=item["id"]
            )


def _letters(item: LiveElement, pipeline: str) -> str:
    """Returns how many rows an element could not take. They wait until a person drops or replays them."""
    count = item["dead_letters_open"]
    rows, they = ("1 row", "it waits") if count == 1 else (f"{count:,} rows", "they wait")
    return f"{item['title']} of {pipeline} could not take {rows}: {they} under Dead letters, with the reason."


def _of_policy(name: str, said: Standing, titles: Mapping[str, str]) -> AttentionLine:
    site, code = said.get("site"), said["code"]
    if site is not None:
        pipeline = said["pipeline"] or ""
        what = _ADVICE[code].format(**{**said, "pipeline": titles.get(pipeline, pipeline)})
        text = f"{name} {what} {said['why']}"
        place = {"pipeline": said["pipeline"], "element": said["element"], "node": said["node"] or None}
        line = _line("policy.advice", text, said["since"], **place)
        if code == "restore":
            return {**line, "restore_to": said["target"] or ""}
        return {**line, "site": site, "change": code} if code in ("copy", "take-out") else line
    text = f"{name} advises to move {said['title']} to {said['target']}. {said['why']}"
    place = {"pipeline": said["pipeline"], "element": said["element"], "node": said["node"]}
    line = _line("policy.advice", text, said["since"], **place)
    return {**line, "move_to": said["target"] or ""}


_STANDS: tuple[tuple[ElementStatus, str], ...] = (
    ("starting", "being started on the node again"),
    ("restoring", "being restored"),
)
"""Statuses in which a deployed element does not process, and what is done about it."""
_ADVICE = {
    "copy": "advises to give {pipeline} its copies at {site}.",
    "take-out": "advises to take the copies at {site} out of {pipeline}.",
    "restore": "advises to restore {title} on {target}.",
    "refused": "does not change the copies of {pipeline} at {site} by itself.",
}


def _line(
    kind: str,
    message: str,
    at: str | None,
    severity: Severity = "warning",
    *,
    pipeline: str | None = None,
    element: str | None = None,
    node: str | None = None,
) -> AttentionLine:
    return {
        "at": at,
        "severity": severity,
        "kind": kind,
        "pipeline": pipeline,
        "element": element,
        "node": node,
        "message": message,
    }
