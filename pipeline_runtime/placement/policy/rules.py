"""The settings of a policy: its kind and the figures of this kind. They are checked when they are read."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, TypeAdapter, model_validator

Mode = Literal["advice", "automatic"]

MARGIN = 0.1
"""The distance between what makes a node hot (or its battery low) and what ends that."""
FOR_S_MAX = 1800
"""Control looks an hour back."""
GONE_S_MAX = 24 * 3600
SAMPLE_S = 30
"""The time between two samples."""
WEEK_S = 7 * 24 * 3600


class _Rule(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class _CpuThreshold(_Rule):
    threshold: float = Field(ge=2 * MARGIN, le=0.99)
    for_s: int = Field(ge=SAMPLE_S, le=FOR_S_MAX)

    @property
    def target_most(self) -> float:
        """Returns the highest CPU that a node may reach by what is moved to it."""
        return self.threshold - MARGIN


class CpuAbove(_CpuThreshold):
    """A node's CPU is above `threshold` (0..1) for `for_s` without a break."""

    kind: Literal["cpu"]

    def beyond(self, value: float) -> bool:
        return value > self.threshold

    def over(self, value: float) -> bool:
        """Returns whether this value ends it."""
        return value < self.threshold - MARGIN


class BatteryBelow(_Rule):
    """A node runs on a battery that is below `threshold` (0..1) for `for_s` without a break."""

    kind: Literal["battery"]
    threshold: float = Field(ge=0.01, le=0.9)
    for_s: int = Field(ge=0, le=FOR_S_MAX)

    def beyond(self, value: float) -> bool:
        return value < self.threshold

    def over(self, value: float) -> bool:
        """Returns whether this value ends it."""
        return value > min(self.threshold + MARGIN, 0.99)


def _in_utc(at: datetime) -> datetime:
    if not 2020 <= at.year <= 2100:
        raise ValueError("between the years 2020 and 2100")
    return at.astimezone(UTC)


class Maintenance(_Rule):
    """A node, or each node of a site, is empty from `begins` on for `minutes`. With `weekly` that is so every
    week at the same time. What runs there leaves `lead_minutes` before."""

    kind: Literal["maintenance"]
    of: Literal["node", "site"]
    name: str = Field(min_length=1, max_length=40)
    begins: Annotated[AwareDatetime, AfterValidator(_in_utc)]
    minutes: int = Field(ge=1, le=WEEK_S // 60)
    weekly: bool
    lead_minutes: int = Field(ge=0, le=24 * 60)

    @model_validator(mode="after")
    def _ends_before_the_next(self) -> Self:
        if self.weekly and (self.minutes + self.lead_minutes) * 60 >= WEEK_S:
            raise ValueError("minutes and lead_minutes together are less than a week, of one that is weekly")
        return self


class LatencyAbove(_Rule):
    """The 95th percentile of the latency of an element of `pipeline` is above `ms` for `for_s` without a
    break. With an empty `element`, any of its elements counts."""

    kind: Literal["latency"]
    pipeline: str = Field(min_length=1, max_length=60)
    element: str = Field(max_length=60)
    ms: int = Field(ge=1, le=600_000)
    for_s: int = Field(ge=SAMPLE_S, le=FOR_S_MAX)

    def concerns(self, pipeline: str, elements: Collection[str]) -> bool:
        """Returns whether the policy is about a group with these elements."""
        return self.pipeline == pipeline and (not self.element or self.element in elements)

    def beyond(self, value: float) -> bool:
        return value > self.ms

    def over(self, value: float) -> bool:
        """Returns whether this value ends it."""
        return value < self.ms * (1 - MARGIN)


class Spread(_Rule):
    """The CPU of a node is `difference` (0..1) above that of the least busy one, for `for_s` without a
    break."""

    kind: Literal["spread"]
    difference: float = Field(ge=2 * MARGIN, le=0.9)
    for_s: int = Field(ge=SAMPLE_S, le=FOR_S_MAX)


class Pack(_CpuThreshold):
    """Everything that a node runs fits on busier nodes for `for_s`: their CPU stays MARGIN under
    `threshold`."""

    kind: Literal["pack"]


class Apart(_Rule):
    """No node runs more than `most` groups of `pipeline`. Without `most`, half of them, rounded up."""

    kind: Literal["apart"]
    pipeline: str = Field(min_length=1, max_length=60)
    most: int | None = Field(default=None, ge=1, le=100)

    def limit(self, groups: int) -> int:
        """Returns the limit for a pipeline with so many groups."""
        return self.most if self.most is not None else max(1, (groups + 1) // 2)


class FollowUser(_Rule):
    """An element of `pipeline` runs on the node that is nearest to where its user has been for `for_s`. With
    `along`, so do unpinned elements that read only from it, or from elements that go along."""

    kind: Literal["follow"]
    pipeline: str = Field(min_length=1, max_length=60)
    element: str = Field(min_length=1, max_length=60)
    along: bool
    for_s: int = Field(ge=0, le=FOR_S_MAX)

    def concerns(self, pipeline: str, elements: Collection[str]) -> bool:
        """Returns whether the policy is about a group with these elements."""
        return self.pipeline == pipeline and self.element in elements


class Sites(_Rule):
    """When a site appears, the parts of `pipeline` that are copied to sites get a copy there; an empty
    `pipeline` means each. A site appears when a node there takes elements for `for_s` without a break. A site
    is gone when none of its nodes was heard for `gone_s`. Its copies then wait for it, are taken out of the
    pipeline, or go on elsewhere."""

    kind: Literal["sites"]
    pipeline: str = Field(max_length=60)
    for_s: int = Field(ge=0, le=FOR_S_MAX)
    gone: Literal["wait", "take-out", "elsewhere"]
    gone_s: int = Field(ge=0, le=GONE_S_MAX)

    def concerns(self, pipeline: str) -> bool:
        return self.pipeline in ("", pipeline)


Rule = Annotated[
    CpuAbove | BatteryBelow | Maintenance | LatencyAbove | Spread | Pack | Apart | FollowUser | Sites,
    Field(discriminator="kind"),
]
_RULES: TypeAdapter[Any] = TypeAdapter(Rule)


def rule_of(stored: dict[str, Any]) -> Rule:
    """Returns the rule as it was stored. Raises ValueError when it is none."""
    found: Rule = _RULES.validate_python(stored)
    return found


@dataclass(frozen=True)
class Policy:
    name: str
    rule: Rule
    mode: Mode = "advice"
    moves_per_hour: int = 6
