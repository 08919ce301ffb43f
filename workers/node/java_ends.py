"""Finds the groups that may have ended this node's Java process, and decides which of them may start.

All groups of a node share one Java process. When it ends, every group that was starting or in a batch is a
suspect. If there is one suspect, it was that group. If there are several, they start one after another the
next time, each as the only suspect until it has done a batch or some time has passed. So the next end tells
which group it was. A group that has ended Java twice is held (`is_held`) until a user asks for it again.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from pydantic import ValidationError

from pipeline_runtime.model.desired import (
    ENDS_WITHIN_MS,
    DesiredReplica,
    JavaEnd,
    WayOn,
    is_held,
    joined_ends,
)
from pipeline_runtime.model.spec import Frozen
from pipeline_runtime.replica.local_state import replace_text

log = logging.getLogger(__name__)

TRIED_MS = 30_000
"""How long a suspect is tried without a batch. Each further end adds the same time."""


class _Known(Frozen):
    """What this node has seen of one group, under one `DesiredReplica.vouched`."""

    vouched: str
    ends: tuple[JavaEnd, ...]


class JavaEnds:
    """Thread-safe. It is kept on disk, because this process ends together with Java's."""

    def __init__(self, path: Path, node: str) -> None:
        self._path = path
        self._node = node
        self._lock = threading.Lock()
        self._known: dict[str, _Known] = self._load()
        self._trying: str | None = None

    def of(self, group: str, want: DesiredReplica | None) -> tuple[JavaEnd, ...]:
        """Returns the ends that count for what is wanted now: seen here, or told by the control side."""
        if want is None:
            return ()
        known = self._known.get(group)
        seen = known.ends if known is not None and known.vouched == want.vouched else ()
        return joined_ends(seen, want.java_ends)

    def may_try(self, group: str) -> bool:
        return self._trying in (None, group)

    def try_(self, group: str) -> bool:
        """Lets a suspect start. Returns False if another one is being tried."""
        with self._lock:
            if self._trying not in (None, group):
                return False
            self._trying = group
            return True

    def tried(self, group: str) -> None:
        """The group has passed its trial, or is down."""
        with self._lock:
            if self._trying == group:
                self._trying = None

    def note(
        self,
        at_work: Mapping[str, DesiredReplica],
        now_ms: int,
        read: Mapping[str, tuple[str, WayOn | None]] = MappingProxyType({}),
    ) -> None:
        """Java has ended. `at_work` has the groups that were starting or in a batch, and what was wanted.
        `read` says of those that were in a batch what it was reading, and the way to go on behind that."""
        with self._lock:
            before = {group: self.of(group, want) for group, want in at_work.items()}
            suspected = {group for group, ends in before.items() if _lately(ends, now_ms)}
            tried = {group for group in at_work if group == self._trying}
            accused = tried or suspected or set(at_work)
            for group in accused:
                reads, skip = read.get(group, ("", None))
                end = JavaEnd(node=self._node, at_ms=now_ms, alone=len(accused) == 1, reads=reads, skip=skip)
                ends = joined_ends(before[group], (end,))
                self._known[group] = _Known(vouched=at_work[group].vouched, ends=ends)
                log.error(
                    "%s: it was starting or in a batch when Java ended%s",
                    group,
                    "; it is held" if is_held(ends) else "" if end.alone else ", like others",
                )
            self._known = {group: one for group, one in self._known.items() if _matters(one, now_ms)}
            self._save()

    def _load(self) -> dict[str, _Known]:
        try:
            read = json.loads(self._path.read_bytes())
            return {group: _Known.model_validate(one) for group, one in read.items()}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, AttributeError, ValidationError) as error:
            log.error("%s cannot be read and counts as empty: %s", self._path, error)
            return {}

    def _save(self) -> None:
        try:
            plain = {group: one.model_dump(mode="json") for group, one in self._known.items()}
            replace_text(self._path, json.dumps(plain))
        except OSError as error:
            log.error("which groups were at work could not be written down: %s", error)


def _lately(ends: tuple[JavaEnd, ...], now_ms: int) -> bool:
    return bool(ends) and ends[-1].at_ms > now_ms - ENDS_WITHIN_MS


def _matters(known: _Known, now_ms: int) -> bool:
    return is_held(known.ends) or _lately(known.ends, now_ms)


def is_suspect(ends: tuple[JavaEnd, ...], now_ms: int) -> bool:
    """Returns whether the group is a suspect, so that it has to wait for its turn to start."""
    return _lately(ends, now_ms)


def has_come_through(ends: tuple[JavaEnd, ...], batch_done: bool, for_ms: int) -> bool:
    """Returns whether a suspect that started `for_ms` ago did not end Java.

    The batch that ended Java comes first, so `batch_done` is enough. After two ends, with other suspects each
    time, only time tells.
    """
    return (batch_done and len(ends) < 2) or for_ms >= TRIED_MS * len(ends)
