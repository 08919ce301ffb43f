"""The page of a template: one line each about what it shows, text for newcomers, and what each element does.

---
title: Power recorder
shows: ...
runs: ...
data: ...
replace: [readings]
---
Markdown.

- `readings`: Markdown about one element. Further lines are indented.
"""

from __future__ import annotations

import re
from typing import Any

from pydantic import Field, ValidationError

from pipeline_runtime.model.document import Name, load_text
from pipeline_runtime.model.faults import DocumentInvalid, pydantic_faults
from pipeline_runtime.model.spec import Frozen

_PAGE = re.compile(r"---\n(.*?)\n---\n(.*)", re.DOTALL)
_ELEMENT = re.compile(r"- `([^`]+)`:[ \n](.*)")
_HEADING = re.compile(r"\n*#+ [^\n]*\Z")


class Front(Frozen):
    """The words on a card of the gallery."""

    title: str = Field(min_length=1, max_length=60)
    shows: str = Field(min_length=1, max_length=240)
    runs: str = Field(min_length=1, max_length=240)  # how long
    data: str = Field(min_length=1, max_length=240)  # which data, real or synthetic
    replace: tuple[Name, ...] = ()  # the elements that users replace by their own source


class TemplatePage(Front):
    text: str  # Markdown without the elements
    elements: dict[str, str]  # element id -> Markdown, in the order of the page


def parse_page(text: str) -> TemplatePage:
    """Returns the page. Raises ValueError, which says what is wrong with the text."""
    parts = _PAGE.fullmatch(text.replace("\r\n", "\n"))
    if parts is None:
        raise ValueError("a template's page begins with its front matter, between two lines of ---")
    front = _front(parts[1])
    words, elements = _split(parts[2])
    return TemplatePage(**front.model_dump(), text=words, elements=elements)


def _front(text: str) -> Front:
    try:
        data: Any = load_text(text)
        return Front.model_validate(data)
    except DocumentInvalid as error:
        raise ValueError(f"its front matter cannot be read: {error.faults[0].message}") from error
    except ValidationError as error:
        faults = pydantic_faults(error, known=Front.model_fields)
        told = "; ".join(f"{path}: {message}" for path, message, _, _ in faults)
        raise ValueError(f"its front matter is wrong: {told}") from error


def _split(markdown: str) -> tuple[str, dict[str, str]]:
    """Returns the text for newcomers, and the text of each element. A heading right above the elements is
    left out."""
    words: list[str] = []
    elements: dict[str, str] = {}
    current: str | None = None
    for line in markdown.splitlines():
        begun = _ELEMENT.match(f"{line}\n")
        if begun is not None:
            current = begun[1]
            if current in elements:
                raise ValueError(f'the element "{current}" is there twice')
            if not elements:
                words = [_HEADING.sub("", "\n".join(words).rstrip())]
            elements[current] = begun[2].strip()
        elif current is not None and (line.startswith(" ") or not line.strip()):
            elements[current] += f"\n{line.removeprefix('  ')}"
        else:
            words += [line] if current is None else ["", line]
            current = None
    return "\n".join(words).strip(), {id: text.strip() for id, text in elements.items()}
