"""The newest lines that this node process has logged, for those who ask the node for them.

They lie in memory, and within bounds. The files in FOGLINE_DATA/logs have all lines, and those from before
the last start.
"""

from __future__ import annotations

import logging
import re
import time
from collections import deque

from pipeline_runtime.model.node_log import LogAnswer, LogLine, LogQuestion

LINES_KEPT = 2000
HEAD_CHARS = 1000
TAIL_CHARS = 3000
ANSWER_CHARS_MAX = 256 << 10

_PASSWORD = re.compile(r"(://[^\s/@:]*):[^\s/@]+@")
_FORMAT = logging.Formatter()  # the message, then the traceback


class RecentLog(logging.Handler):
    """Keeps the newest LINES_KEPT lines, without the passwords in addresses and without `secrets`."""

    def __init__(self, secrets: tuple[str, ...] = ()) -> None:
        super().__init__()
        self._secrets = tuple(secret for secret in secrets if secret)
        self._kept: deque[LogLine] = deque(maxlen=LINES_KEPT)
        self._since_ms = int(time.time() * 1000)

    def emit(self, record: logging.LogRecord) -> None:
        try:
            text = _cut(self._without_secrets(_FORMAT.format(record)))
            line = LogLine(
                at_ms=int(record.created * 1000), level=record.levelname, logger=record.name, text=text
            )
            if len(self._kept) == LINES_KEPT:
                self._since_ms = self._kept[1].at_ms
            self._kept.append(line)
        except Exception:
            self.handleError(record)

    def answer(self, question: LogQuestion) -> LogAnswer:
        """Returns the newest lines that match, at most `limit` and about ANSWER_CHARS_MAX characters."""
        if self.lock is None:  # as logging's types have it
            return LogAnswer(failed=True)
        with self.lock:
            kept, since_ms = list(self._kept), self._since_ms
        found = matching(kept, question)
        return LogAnswer(since_ms=since_ms, matching=len(found), lines=_newest(found, question.limit))

    def _without_secrets(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return _PASSWORD.sub(r"\1:***@", text)


def matching(lines: list[LogLine], question: LogQuestion) -> list[LogLine]:
    """Returns the lines of the level that name the group or a topic of it, and have the searched text."""
    levels = logging.getLevelNamesMapping()
    least = levels[question.level]
    named = re.compile(rf"(?<![\w-]){re.escape(question.group)}(?![\w-])") if question.group else None
    search = question.search.casefold()
    return [
        line
        for line in lines
        if levels.get(line.level, logging.CRITICAL) >= least
        and (named is None or named.search(line.text))
        and (search in line.text.casefold() or search in line.logger.casefold())
    ]


def _newest(lines: list[LogLine], limit: int) -> tuple[LogLine, ...]:
    taken: list[LogLine] = []
    chars = 0
    for line in reversed(lines[-limit:]):
        chars += len(line.text)
        if taken and chars > ANSWER_CHARS_MAX:
            break
        taken.append(line)
    return tuple(reversed(taken))


def _cut(text: str) -> str:
    """A traceback says at its end what happened, and the message stands at its beginning."""
    if len(text) <= HEAD_CHARS + TAIL_CHARS:
        return text
    return f"{text[:HEAD_CHARS]}\n…\n{text[-TAIL_CHARS:]}"
