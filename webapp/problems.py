"""Refusals as RFC 9457 problem documents: what happened, what is safe, what to do next.

Actions raise them. The API turns them into responses, and the pages into error pages.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, ClassVar, NotRequired

from pydantic import ConfigDict, with_config
from typing_extensions import TypedDict


class Instead(TypedDict):
    column: str
    """the column that the parameter then reads"""
    value: str


@with_config(ConfigDict(extra="allow"))
class Fault(TypedDict):
    element: str | None
    path: str
    message: str
    code: NotRequired[str]
    title: NotRequired[str]
    """what people call the element"""
    place: NotRequired[str]
    """the field of its form"""
    instead: NotRequired[list[Instead]]
    """values of the parameter at `path` that would be right"""


CORRECT = "Correct what is named here, then try again."
"""What to do about a request whose mistakes are all told."""


class Problem(Exception):
    """A refusal; its subclasses are the kinds. `code` names its page in docs/errors.

    `next` says what to do. `safe` says what is as it was; a request that only reads needs none.
    """

    status: ClassVar[int]
    kind: ClassVar[str]

    def __init__(
        self,
        detail: str,
        *,
        next: str,
        safe: str | None = None,
        faults: list[Fault] | None = None,
        code: str | None = None,
        **extra: Any,
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.safe = safe
        self.next = next
        self.faults = faults or []
        self.code = code or self.kind
        self.extra = extra

    def document(self) -> dict[str, Any]:
        return problem_document(
            self.status,
            self.detail,
            self.kind,
            self.safe,
            self.next,
            self.faults,
            code=self.code,
            **self.extra,
        )


class Unreadable(Problem):
    status = 400
    kind = "unreadable"


class Unauthenticated(Problem):
    status = 401
    kind = "unauthenticated"


class Forbidden(Problem):
    status = 403
    kind = "forbidden"


class Missing(Problem):
    status = 404
    kind = "not-found"


class Conflict(Problem):
    status = 409
    kind = "conflict"


class LengthRequired(Problem):
    status = 411
    kind = "length-required"


class TooLarge(Problem):
    status = 413
    kind = "too-large"


class Invalid(Problem):
    status = 422
    kind = "invalid"


class PreconditionRequired(Problem):
    status = 428
    kind = "precondition-required"


class TooSoon(Problem):
    """The same was asked just now. `retry_after_s` says when it is accepted again."""

    status = 429
    kind = "too-soon"


class BackendAway(Problem):
    """Kafka, Redis, the chunk service or a node does not answer."""

    status = 503
    kind = "backend-away"


def problem_document(
    status: int,
    detail: str,
    kind: str = "about:blank",
    safe: str | None = None,
    next: str | None = None,
    faults: list[Fault] | None = None,
    **extra: Any,
) -> dict[str, Any]:
    document: dict[str, Any] = {
        "type": kind if ":" in kind else f"urn:fogline:problem:{kind}",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "faults": faults or [],
        **extra,
    }
    if safe:
        document["safe"] = safe
    if next:
        document["next"] = next
    return document
