"""Rules that raise alarms from what Fogline measures. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from webapp.alarms.state import Severity

Metric = Literal[
    "lag_rows",
    "latency_ms",
    "rate_low",
    "rate_high",
    "no_rows_s",
    "element_failed",
    "connector_failing",
    "rows_lost",
    "spool_percent",
    "dead_letters",
    "node_silent",
    "disk_percent",
    "cpu_percent",
    "memory_percent",
]
RULES_MAX = 100
FOR_S_MAX = 7 * 86_400
LATE = timedelta(seconds=30)
"""So long after the time of a rule its alarm may still come."""
AWAITED_MAX = timedelta(minutes=5)
"""No alarm of an element waits longer for that of its node, however long the rule about nodes waits."""


@dataclass(frozen=True)
class Kind:
    """What a metric is called, what an alarm by it says, and of what it is. A flag is 1 or 0, and has no
    limit."""

    title: str
    says: str
    unit: str
    of: Literal["element", "node"]
    below: bool = False
    flag: bool = False


KINDS: Mapping[Metric, Kind] = {
    "lag_rows": Kind(
        "rows that wait", "{value} rows wait for {title} (more than {limit}).", "rows", "element"
    ),
    "latency_ms": Kind(
        "latency", "Rows take {value} ms through {title} (more than {limit} ms).", "ms", "element"
    ),
    "rate_low": Kind(
        "too few rows", "{title} has {value} rows/s (fewer than {limit}).", "rows/s", "element", below=True
    ),
    "rate_high": Kind(
        "too many rows", "{title} has {value} rows/s (more than {limit}).", "rows/s", "element"
    ),
    "no_rows_s": Kind(
        "no rows", "{title} has had no rows for {value} s (more than {limit} s).", "s", "element"
    ),
    "element_failed": Kind("has failed", "{title} has failed.", "", "element", flag=True),
    "connector_failing": Kind("connector fails", "The connector of {title} fails.", "", "element", flag=True),
    "rows_lost": Kind("rows lost", "The connector of {title} has lost rows.", "", "element", flag=True),
    "spool_percent": Kind(
        "disk buffer of a connector",
        "The disk buffer of {title} is {value} % full (more than {limit} %): Kafka does not take its rows.",
        "%",
        "element",
    ),
    "dead_letters": Kind(
        "dead letters", "{value} rows of {title} are dead letters (more than {limit}).", "rows", "element"
    ),
    "node_silent": Kind("does not answer", "{title} does not answer.", "", "node", flag=True),
    "disk_percent": Kind("disk", "The disk of {title} is {value} % full (more than {limit} %).", "%", "node"),
    "cpu_percent": Kind("CPU", "The CPU of {title} is {value} % busy (more than {limit} %).", "%", "node"),
    "memory_percent": Kind(
        "memory", "The memory of {title} is {value} % full (more than {limit} %).", "%", "node"
    ),
}


class MetricRule(BaseModel):
    """When such an alarm is raised and cleared, and of what. Without `pipeline`, `element` or `node` it is
    about all of them."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    metric: Metric
    raise_at: float = Field(default=0, ge=0, le=1e12, allow_inf_nan=False)
    clear_at: float | None = Field(default=None, ge=0, le=1e12, allow_inf_nan=False)
    """at this value the alarm ends; without it, at `raise_at`"""
    for_s: float = Field(default=0, ge=0, le=FOR_S_MAX, allow_inf_nan=False)
    clear_for_s: float = Field(default=0, ge=0, le=FOR_S_MAX, allow_inf_nan=False)
    severity: Severity = "warning"
    pipeline: str | None = Field(default=None, max_length=60)
    element: str | None = Field(default=None, max_length=60)
    node: str | None = Field(default=None, max_length=40)

    @property
    def kind(self) -> Kind:
        return KINDS[self.metric]

    @property
    def ends_at(self) -> float:
        return self.raise_at if self.clear_at is None else self.clear_at

    @model_validator(mode="after")
    def _consistent(self) -> MetricRule:
        kind = self.kind
        if kind.of == "node" and (self.pipeline or self.element):
            raise ValueError("a rule about nodes names no pipeline and no element")
        if self.element and not self.pipeline:
            raise ValueError("say of which pipeline the element is")
        if self.clear_at is not None and not kind.flag:
            wrong = self.clear_at < self.raise_at if kind.below else self.clear_at > self.raise_at
            if wrong:
                side = "at least" if kind.below else "at most"
                raise ValueError(f"clear_at has to be {side} raise_at, which is {self.raise_at:.15g}")
        return self


@dataclass(frozen=True)
class Subject:
    """What a rule looks at. Of an element, `node` is where it runs."""

    pipeline: str = ""
    element: str = ""
    node: str = ""
    site: str = ""
    title: str = ""
    """as people read it"""

    @property
    def key(self) -> tuple[str, str, str]:
        """What identifies the subject: the same wherever an element runs."""
        return (self.pipeline, self.element, "" if self.element else self.node)


def is_about(rule: MetricRule, subject: Subject) -> bool:
    """Returns whether the rule looks at it. A rule that names a node looks at the elements there, too."""
    wanted = (
        (rule.pipeline, subject.pipeline),
        (rule.element, subject.element),
        (rule.node, subject.node),
    )
    return (rule.kind.of == "element") == bool(subject.element) and all(
        said in (None, found) for said, found in wanted
    )


def is_awaited(rule: MetricRule, node: str, silent_at: datetime, now: datetime) -> bool:
    """Returns whether the rule, which is about silent nodes, will soon raise an alarm about this one, or has
    just done so."""
    awaited = min(timedelta(seconds=rule.for_s), AWAITED_MAX)
    return rule.node in (None, node) and now - silent_at < awaited + LATE


@dataclass(frozen=True)
class Verdict:
    act: Literal["raise", "clear"] | None = None
    since_s: float | None = None
    """since when the value has been where it would change the alarm; pass it to the next look"""


def judge(
    rule: MetricRule, value: float | None, *, is_open: bool, now_s: float, since_s: float | None
) -> Verdict:
    """Returns what to do about a value. One that is not known changes nothing, and its time begins again."""
    if value is None:
        return Verdict()
    if is_open:
        if not _has_ended(rule, value):
            return Verdict()
        wait_s, act = rule.clear_for_s, "clear"
    else:
        if not _is_beyond(rule, value):
            return Verdict()
        wait_s, act = rule.for_s, "raise"
    began_s = now_s if since_s is None else min(since_s, now_s)
    if now_s - began_s < wait_s:
        return Verdict(None, began_s)
    return Verdict("raise") if act == "raise" else Verdict("clear")


def _is_beyond(rule: MetricRule, value: float) -> bool:
    if rule.kind.flag:
        return value > 0
    return value < rule.raise_at if rule.kind.below else value > rule.raise_at


def _has_ended(rule: MetricRule, value: float) -> bool:
    if rule.kind.flag:
        return value <= 0
    return value >= rule.ends_at if rule.kind.below else value <= rule.ends_at


def message_of(rule: MetricRule, subject: Subject, value: float, reason: str = "") -> str:
    """Returns what is wrong, in one sentence, and behind it the reason, if one is known."""
    shown = f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.2f}"
    said = rule.kind.says.format(title=subject.title, value=shown, limit=f"{rule.raise_at:,.15g}")
    return f"{said} {reason}".rstrip()
