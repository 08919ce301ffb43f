"""Makes docs/errors/ from model/error_codes/, a page for each error: `make reference`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from textwrap import fill

from pipeline_runtime.model.error_codes import (
    AT_ELEMENTS,
    AT_START,
    ERRORS,
    IN_ANSWERS,
    IN_ORDERS,
    KnownError,
)

FOLDER = Path(__file__).parents[1] / "docs" / "errors"
LINE_MAX = 120
_MADE = "This page is made by `make reference` from `pipeline_runtime/model/error_codes/`."


def pages() -> dict[str, str]:
    """Returns the text of each page by its file's name, the index included."""
    return {"README.md": _index()} | {f"{error.code}.md": _page(error) for error in ERRORS.values()}


def write() -> None:
    """Writes all pages, and deletes those of codes that there are no longer."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for page in FOLDER.glob("*.md"):
        page.unlink()
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")


def _index() -> str:
    return _joined(
        "# Errors",
        _MADE,
        "Each error has a page that says what happened, what is safe and what to do.",
        "The dashboard shows the same pages at `/errors/`.",
        "## Shown at an element",
        _table(AT_ELEMENTS),
        "## In answers of the REST API and in messages of the dashboard",
        "The code is the member `code` of the problem document.",
        _table(IN_ANSWERS),
        "## Of deployments, moves and restorations that failed",
        "The code is the member `code` of the operation or the handover.",
        _table(IN_ORDERS),
        "## At a start",
        "`make up` names the page of each reason why it cannot start.",
        _table(AT_START),
    )


def _table(errors: Sequence[KnownError]) -> str:
    rows = [f"| [`{error.code}`]({error.code}.md) | {error.title} |" for error in errors]
    return "\n".join(["| code | what it means |", "|---|---|", *rows])


def _page(error: KnownError) -> str:
    return _joined(
        f"# {error.code}",
        f"{error.title}.",
        _where(error),
        "## What happened",
        _lines(error.happened),
        "## What is safe",
        _lines(error.safe),
        "## What to do",
        _lines(error.next),
        "[All errors](README.md). [Glossary](../reference/glossary.md).",
    )


def _where(error: KnownError) -> str:
    if error in AT_ELEMENTS:
        return "Shown at an element."
    if error in IN_ORDERS:
        return "Shown with a deployment, a move or a restoration that failed."
    return "Printed at a start." if error in AT_START else "In an answer of the REST API, or in a message."


def _lines(text: str) -> str:
    """Returns the text with one sentence per line, and long sentences in several lines."""
    sentences = text.replace(". ", ".\n").splitlines()
    return "\n".join(
        fill(sentence, LINE_MAX, break_long_words=False, break_on_hyphens=False) for sentence in sentences
    )


def _joined(*parts: str) -> str:
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    write()
    print(f"wrote {FOLDER}")
