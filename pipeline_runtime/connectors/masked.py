"""Removes the secrets of a connection from messages, because a library may quote them in an error or a
log."""

from __future__ import annotations

import logging
from collections.abc import Iterable

_MASK = "***"


class Masked:
    """Replaces secrets in texts. `secrets` may be set later: they are not known before the operator is."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self.hide(secrets)

    def hide(self, secrets: Iterable[str]) -> None:
        # The longest first: one may be a part of another.
        self._secrets = sorted({each for each in secrets if each}, key=len, reverse=True)

    def __call__(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, _MASK)
        return text


class MaskedLog(logging.Formatter):
    """Formats a record with its traceback, without secrets."""

    def __init__(self, masked: Masked, *, fmt: str) -> None:
        super().__init__(fmt)
        self._masked = masked

    def format(self, record: logging.LogRecord) -> str:
        return self._masked(super().format(record))


def log_without_secrets() -> Masked:
    """Lets this process log warnings to standard error. Returns what masks them: tell it the secrets."""
    masked = Masked()
    handler = logging.StreamHandler()
    handler.setFormatter(MaskedLog(masked, fmt="%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    return masked
