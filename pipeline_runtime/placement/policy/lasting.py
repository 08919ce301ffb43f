"""Decides whether a measured value has been beyond a threshold long enough without a break."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from pipeline_runtime.placement.policy.facts import GAP_S

NEVER_S = float("-inf")


class Bounded(Protocol):
    @property
    def for_s(self) -> int: ...

    def beyond(self, value: float, /) -> bool: ...

    def over(self, value: float, /) -> bool:
        """Returns whether the value ends what was beyond. There is a margin between the two, so that a value
        that flaps does not count."""
        ...


class Timed(Protocol):
    @property
    def at_s(self) -> float: ...


S = TypeVar("S", bound=Timed)
Value = Callable[[S], float | None]


def beyond_since(
    rule: Bounded, samples: Sequence[S], value_of: Value[S], after_s: float = NEVER_S
) -> tuple[float | None, bool]:
    """Returns since when the newest samples are beyond the threshold without a break, or None; and whether
    that counts.

    It counts once it has lasted for `for_s`, and from then on until a sample says that it is over. Samples up
    to `after_s` do not count.
    """
    since, counts, before_s = None, False, None
    for sample in _since_it_was_over(rule, samples, value_of, after_s):
        value = value_of(sample)
        if before_s is not None and sample.at_s - before_s > GAP_S:
            since, counts = None, False
        before_s = sample.at_s
        if value is not None and rule.beyond(value):
            since = sample.at_s if since is None else since
            counts = counts or sample.at_s - since >= rule.for_s
        else:
            since = None
    return since, counts


def so_far(rule: Bounded, since: float | None, newest: Timed) -> str:
    """Says how long it has lasted, and how long it has to."""
    return f"{max(0.0, newest.at_s - (since or 0.0)):.0f} s of {rule.for_s} s"


def _since_it_was_over(
    rule: Bounded, samples: Sequence[S], value_of: Value[S], after_s: float
) -> Sequence[S]:
    """Returns the newest samples, or none when the last one says that it is over. Goes backwards, since most
    values are calm."""
    start = len(samples)
    while start > 0:
        sample = samples[start - 1]
        value = value_of(sample)
        if sample.at_s <= after_s or value is None or rule.over(value):
            break
        start -= 1
    return samples[start:]
