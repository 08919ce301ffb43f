"""Asks about the columns of a table: their names, their marks, "no value" and their types."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from pipeline_runtime.model.names import listed_and
from pipeline_runtime.model.schema import FieldType
from webapp.imports.column_names import Shift, named
from webapp.imports.column_types import Cell, Judged
from webapp.imports.dialect import Line
from webapp.imports.number_marks import Decision
from webapp.imports.reading import MISSING_MAX, Choice, Question, Reading
from webapp.imports.table_place import Place


@dataclass(frozen=True)
class Facts:
    """The facts for the questions. `base` says how lines are divided. `pieces` are rows from the middle of
    the file, whose line numbers are not known."""

    base: Reading
    rows: Sequence[Line]
    comments: Sequence[Line]
    pieces: Sequence[Line]
    days: str = "excel_days"  # the format of plain numbers that count days


@dataclass(frozen=True)
class Table:
    facts: Facts
    place: Place
    # The cells of each column, in the file's order; those of the pieces come after those of the beginning.
    columns: tuple[tuple[Cell, ...], ...]
    names: list[tuple[str, str | None]]
    rows: tuple[Line, ...]  # the rows of the beginning
    shift: Shift | None = None  # not None if there are more cells than names
    again: int | None = None  # the line in which the names come again for the first time


def shift_question(table: Table) -> list[Question]:
    shift = table.shift
    if shift is None or not shift.asks:
        return []
    width = len(table.columns)
    left = named(shift.names, (), width)
    right = named(("", *shift.names), (), width)

    def changes(names: Sequence[tuple[str, str | None]]) -> dict[str, JsonValue]:
        found: dict[str, JsonValue] = {}
        for at, (name, unit) in enumerate(names):
            found |= {f"columns.{at}.name": name, f"columns.{at}.unit": unit}
        return found

    return [
        Question(
            id="names",
            text=f"The rows have {width} cells, and there are {width - 1} names. Which column has none? "
            "If commas both divide cells and stand before decimals, export the file with another delimiter.",
            line=table.place.header,
            choices=(
                Choice(
                    title="The last one", example=", ".join(n for n, _ in left[:6]), changes=changes(left)
                ),
                Choice(
                    title="The first one", example=", ".join(n for n, _ in right[:6]), changes=changes(right)
                ),
            ),
        )
    ]


def marks_question(marks: Decision, table: Table) -> list[Question]:
    if marks.doubt is None:
        return []
    mark, doubt = marks.doubted_mark, marks.doubt
    name = table.names[marks.columns[0]][0]
    other = "," if mark == "." else "."
    small, large = doubt.replace(mark, "."), doubt.replace(mark, "")
    word = "point" if mark == "." else "comma"

    def changes(decimal: str, thousands: str) -> dict[str, JsonValue]:
        if not marks.apart:
            return {"decimal": decimal, "thousands": thousands}
        return {
            f"columns.{at}.{what}": value
            for at in marks.columns
            for what, value in (("decimal", decimal), ("thousands", thousands))
        }

    return [
        Question(
            id="thousands",
            text=f"What does the {word} in {doubt} ({name}) stand for?",
            column=name,
            choices=(
                Choice(
                    title=f"It stands before decimals: {doubt} is {small}",
                    example=small,
                    changes=changes(mark, ""),
                ),
                Choice(
                    title=f"It stands between thousands: {doubt} is {large}",
                    example=large,
                    changes=changes(other, mark),
                ),
            ),
        )
    ]


def missing_questions(reading: Reading, table: Table, judged: Sequence[Judged]) -> list[Question]:
    suspects = [
        (each.suspect, at)
        for at, each in enumerate(judged)
        if each.suspect and reading.columns[at].type in (FieldType.INTEGER, FieldType.NUMBER)
    ]
    questions = []
    for text in dict.fromkeys(text for text, _ in suspects):
        columns = [at for each, at in suspects if each == text]
        more = [f"{len(columns) - 5} more"] if len(columns) > 5 else []
        names = listed_and([table.names[at][0] for at in columns[:5]] + more)
        missing = {
            f"columns.{at}.missing": [
                *(reading.columns[at].missing or reading.missing)[: MISSING_MAX - 1],
                text,
            ]
            for at in columns
        }
        questions.append(
            Question(
                id=f"missing.{text}",
                text=f"{text} in {names} may mean that there is no value. What does it mean?",
                column=table.names[columns[0]][0],
                choices=(
                    Choice(title="There is no value", changes=dict[str, JsonValue](missing)),
                    Choice(title="It is a value", example=text, changes={}),
                ),
            )
        )
    return questions


def type_questions(reading: Reading, table: Table, judged: Sequence[Judged]) -> list[Question]:
    questions = []
    for at, kind in enumerate(judged):
        if (
            not kind.asks
            or kind.unreadable is None
            or reading.columns[at].type not in (FieldType.INTEGER, FieldType.NUMBER)
        ):
            continue
        name = table.names[at][0]
        where = f" from line {kind.unreadable.line} on" if kind.unreadable.line else ""
        example = short(kind.unreadable.text)
        questions.append(
            Question(
                id=f"type.{name}",
                text=f"{name} holds numbers and other texts{where}, such as {example!r}. How is it read?",
                line=kind.unreadable.line,
                column=name,
                choices=(
                    Choice(
                        title="As numbers. "
                        + ("1 cell has" if kind.others == 1 else f"{kind.others:,} cells have")
                        + " no value then",
                        changes={f"columns.{at}.type": kind.type.value},
                    ),
                    Choice(title="As text", example=example, changes={f"columns.{at}.type": "string"}),
                ),
            )
        )
    return questions


def short(text: str) -> str:
    text = text.strip()
    return text if len(text) <= 40 else text[:39] + "…"
