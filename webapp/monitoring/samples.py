"""Keeps rows that are pinned to an element of a draft, and checks whether the element makes of them what a
person expects."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import zip_longest
from time import monotonic
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from typing_extensions import TypedDict

from pipeline_runtime.model.preview import SHOWN_MAX, SampleRow
from pipeline_runtime.operators.registry import default_registry
from webapp.accounts.models import Role, User
from webapp.accounts.permissions import require
from webapp.audit.records import audit
from webapp.monitoring.preview import (
    Asked,
    CellDifference,
    ElementPreview,
    PinnedRows,
    PreviewRowOut,
    RowDifference,
    Rows,
    asked,
    shown_preview,
)
from webapp.pipelines.models import PinnedSample, Pipeline
from webapp.pipelines.shape import element_of, names_of
from webapp.problems import Conflict, Invalid, Missing, Problem

BYTES_MAX = 256 * 1024
"""How long the rows that are pinned to one element may be, as JSON."""
SAMPLES_MAX = 20
"""To how many elements of a pipeline rows may be pinned."""
CELLS_MAX = 20
"""How many columns of a row that differ are named."""
CHECK_S = 20
"""What is expected is checked for so long, at most, before a deployment."""


class Expected(TypedDict):
    columns: list[str]
    rows: list[PreviewRowOut]
    letters: int


class ExpectedCheck(TypedDict):
    """Whether an element makes of its pinned rows what is expected."""

    element: str
    title: str
    columns: list[str]
    differences: list[RowDifference]
    letters_expected: int
    letters_found: int
    trouble: str | None
    """why it could not be checked"""


def preview_element(
    actor: User, pipeline: Pipeline, document: dict[str, Any], id: str, rows: Rows, node: str | None
) -> ElementPreview:
    """Previews an element with its pinned rows. Raises Missing, Invalid with the faults that prevent a
    preview, Conflict and BackendAway."""
    question, sample = asked(actor, pipeline, document, id, rows, node), _sample(pipeline, id)
    if rows == "pinned" and sample is None:
        raise _nothing_pinned(question)
    began_s = monotonic()
    answer = question.answer(given=_given(sample) if rows == "pinned" and sample else None)
    shown = shown_preview(question, answer, monotonic() - began_s)
    if sample is not None:
        shown["pinned"] = _pinned(sample, shown if rows == "pinned" else None)
    return shown


def pin_rows(
    actor: User, pipeline: Pipeline, document: dict[str, Any], id: str, rows: Rows, node: str | None
) -> PinnedRows:
    """Keeps the first rows that come to an element, and forgets what was expected of other rows.

    Raises Missing, Invalid, Conflict and BackendAway.
    """
    question = asked(actor, pipeline, document, id, rows, node)
    name = question.names[id]
    if not question.reads:
        raise Invalid(
            f"{name} is a source, so no rows come to it.", next="Choose an element that reads rows."
        )
    question.own_group()  # a view has none
    answer = question.answer(sample=True)
    trouble = shown_preview(question, answer, 0)["trouble"]
    if trouble is not None:
        raise Conflict(trouble["message"], next=trouble["next"])
    found = {port: [row.model_dump(mode="json") for row in each] for port, each in answer.sample.items()}
    if not any(found.values()):
        raise Conflict(f"No rows come to {name}.", next="Choose other rows, or a node that can read them.")
    if len(json.dumps(found)) > BYTES_MAX:
        raise Invalid(
            f"The rows that come to {name} are longer than {BYTES_MAX // 1024} KiB, so they are not pinned.",
            next="Select fewer columns before it.",
        )
    with transaction.atomic():
        if pipeline.samples.exclude(element=id).count() >= SAMPLES_MAX:
            raise Conflict(
                f"Rows are pinned to {SAMPLES_MAX} elements of this pipeline already.",
                next="Unpin the rows of another element first.",
            )
        sample, _ = PinnedSample.objects.update_or_create(
            pipeline=pipeline,
            element=id,
            defaults={"inputs": found, "expected": None, "created_by": actor, "created_at": timezone.now()},
        )
        audit(actor, "element.pin_rows", f"{pipeline.name}/{id}", rows=_count(sample))
    return _pinned(sample, None)


def unpin_rows(actor: User, pipeline: Pipeline, id: str) -> None:
    """Forgets the pinned rows, and what is expected of them."""
    require(actor, Role.EDITOR, "unpin rows")
    with transaction.atomic():
        deleted, _ = pipeline.samples.filter(element=id).delete()
        if deleted:
            audit(actor, "element.unpin_rows", f"{pipeline.name}/{id}")


def expect_rows(
    actor: User, pipeline: Pipeline, document: dict[str, Any], id: str, node: str | None
) -> PinnedRows:
    """Keeps what an element makes of its pinned rows now, as what a person expects from then on.

    Raises Missing, Invalid, Conflict and BackendAway.
    """
    question, sample = asked(actor, pipeline, document, id, "pinned", node), _sample(pipeline, id)
    name = question.names[id]
    if sample is None:
        raise _nothing_pinned(question)
    if _goes_by_the_clock(document, id):
        raise Invalid(
            f"{name} goes by the clock, so it makes other rows each time.",
            next="Expect rows of another element.",
        )
    shown = shown_preview(question, question.answer(given=_given(sample)), 0)
    if shown["trouble"] is not None:
        raise Conflict(shown["trouble"]["message"], next=shown["trouble"]["next"])
    output = shown["output"]
    if output is None:
        raise Invalid(f"{name} gives no rows.", next="Expect rows of an element before it.")
    expected: Expected = {
        "columns": [field.name for field in output["columns"]],
        "rows": output["rows"],
        "letters": shown["letters_count"],
    }
    with transaction.atomic():
        kept = PinnedSample.objects.filter(pk=sample.pk, created_at=sample.created_at)
        if not kept.update(expected=expected):
            raise Conflict(
                f"Other rows were pinned to {name} meanwhile.", next="Look at them, then try again."
            )
        sample.expected = expected
        audit(actor, "element.expect_rows", f"{pipeline.name}/{id}", rows=len(output["rows"]))
    return _pinned(sample, shown)


def check_expected(actor: User, pipeline: Pipeline, document: dict[str, Any]) -> list[ExpectedCheck]:
    """Returns for each element with expected rows whether it makes these rows, as the element is in
    `document`."""
    require(actor, Role.EDITOR, "check what is expected")
    names, until_s = names_of(document), monotonic() + CHECK_S
    drawn = [each for each in _with_expected(pipeline) if element_of(document, each.element) is not None]
    return [_check(actor, pipeline, document, sample, names, until_s) for sample in drawn]


def expects_rows(pipeline: Pipeline) -> bool:
    return _with_expected(pipeline).exists()


def _with_expected(pipeline: Pipeline) -> QuerySet[PinnedSample]:
    return pipeline.samples.exclude(expected=None)


def refuse_unexpected(actor: User, pipeline: Pipeline) -> int | None:
    """Checks the draft before it is deployed. Raises Conflict, which names the elements that make other rows
    than expected and those that could not be checked.

    Returns the revision of the draft that was checked, or None if nothing is expected.
    """
    checks = check_expected(actor, pipeline, pipeline.draft)
    wrong = [(each, why) for each in checks if (why := _wrong(each)) is not None]
    if wrong:
        raise Conflict(
            " ".join(f"{each['title']} {why}" for each, why in wrong),
            safe="Nothing was deployed.",
            next="Mend the elements, or expect other rows of them. "
            "With check_expected: false it is deployed without this check.",
            checks=[each for each, _ in wrong],
        )
    return pipeline.draft_revision if checks else None


def _wrong(check: ExpectedCheck) -> str | None:
    if check["trouble"] is not None:
        return f"was not checked: {check['trouble']}"
    if check["differences"] or check["letters_found"] != check["letters_expected"]:
        return "makes other rows of its pinned rows than expected."
    return None


def _check(
    actor: User,
    pipeline: Pipeline,
    document: dict[str, Any],
    sample: PinnedSample,
    names: dict[str, str],
    until_s: float,
) -> ExpectedCheck:
    expected: Expected = sample.expected
    check: ExpectedCheck = {
        "element": sample.element,
        "title": names[sample.element],
        "columns": expected["columns"],
        "differences": [],
        "letters_expected": expected["letters"],
        "letters_found": expected["letters"],
        "trouble": None,
    }
    if monotonic() > until_s:
        return {**check, "trouble": f"The checks before it took {CHECK_S} s."}
    try:
        question = asked(actor, pipeline, document, sample.element, "pinned", None)
        shown = shown_preview(question, question.answer(given=_given(sample)), 0)
    except Problem as problem:
        return {**check, "trouble": problem.detail}
    if shown["trouble"] is not None:
        return {**check, "trouble": shown["trouble"]["message"]}
    found = differences(expected, shown)
    return {**check, "differences": found, "letters_found": shown["letters_count"]}


def differences(expected: Expected, shown: ElementPreview) -> list[RowDifference]:
    """Returns where an output differs from what is expected, row by row."""
    output = shown["output"]
    rows = output["rows"] if output is not None else []
    columns = [field.name for field in output["columns"]] if output is not None else []
    pairs = zip_longest(
        [_content(expected["columns"], row) for row in expected["rows"]],
        [_content(columns, row) for row in rows],
    )
    found = [_difference(place, before, after) for place, (before, after) in enumerate(pairs, 1)]
    return [each for each in found if each is not None][:SHOWN_MAX]


def _difference(
    place: int, before: dict[str, Any] | None, after: dict[str, Any] | None
) -> RowDifference | None:
    if before is None or after is None:
        return {"place": place, "kind": "missing" if after is None else "unexpected", "cells": []}
    cells: list[CellDifference] = [
        {"name": name, "expected": before.get(name), "found": after.get(name)}
        for name in dict.fromkeys([*before, *after])
        if before.get(name) != after.get(name) or (name in before) != (name in after)
    ]
    return {"place": place, "kind": "differs", "cells": cells[:CELLS_MAX]} if cells else None


def _content(columns: Sequence[str], row: PreviewRowOut) -> dict[str, Any]:
    return {"time": row["at"], "key": row["key"], **dict(zip(columns, row["values"], strict=True))}


def _goes_by_the_clock(document: dict[str, Any], id: str) -> bool:
    element = element_of(document, id) or {}
    operator = default_registry().create(element["type"], element.get("params") or {})
    return operator.ticks_s() is not None


def _sample(pipeline: Pipeline, id: str) -> PinnedSample | None:
    return pipeline.samples.select_related("created_by").filter(element=id).first()


def _given(sample: PinnedSample) -> dict[str, tuple[SampleRow, ...]]:
    return {port: tuple(SampleRow(**row) for row in rows) for port, rows in sample.inputs.items()}


def _nothing_pinned(question: Asked) -> Missing:
    return Missing(
        f"No rows are pinned to {question.names[question.id]}.", next="Pin rows in its preview first."
    )


def _count(sample: PinnedSample) -> int:
    return sum(map(len, sample.inputs.values()))


def _pinned(sample: PinnedSample, shown: ElementPreview | None) -> PinnedRows:
    expected: Expected | None = sample.expected
    return {
        "rows": _count(sample),
        "at": sample.created_at.isoformat(),
        "by": sample.created_by.username if sample.created_by else None,
        "expects": expected is not None,
        "differences": differences(expected, shown) if expected is not None and shown is not None else [],
        "letters_expected": None if expected is None else expected["letters"],
    }
