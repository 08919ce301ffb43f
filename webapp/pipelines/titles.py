"""Reads a pipeline's title, and makes a name from it. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterator
from itertools import count
from typing import Any

from pipeline_runtime.model.document import NAME_MAX, TITLE_MAX
from webapp.pipelines.shape import metadata_of

_SPELLED = str.maketrans(
    {"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss", "æ": "ae", "œ": "oe", "ø": "oe", "ł": "l"}
)
"""Letters and their replacements in names. Other letters only lose their accents."""


def title_of(document: dict[str, Any]) -> str:
    """Returns the title in a draft, or "" if it has none. A draft may have any value there."""
    title = metadata_of(document).get("title")
    return " ".join(title.split())[:TITLE_MAX] if isinstance(title, str) else ""


def titled(document: dict[str, Any], title: str) -> dict[str, Any]:
    """Returns the document with this title. If the title only repeats the name, the document gets no
    title."""
    metadata = dict(document["metadata"])
    metadata.pop("title", None)
    if title and title != metadata["name"]:
        metadata["title"] = title
    return {**document, "metadata": metadata}


def name_from(title: str, taken: Collection[str], otherwise: str = "pipeline") -> str:
    """Returns a name for what people call `title`, which none of `taken` has. Without a letter or digit in
    the title, the name begins with `otherwise`.

    >>> name_from("Fräsen Überwachung", [])
    'fraesen-ueberwachung'
    """
    # Composes the text first, because a decomposed ä is an a and an accent.
    spelled = unicodedata.normalize("NFC", title).lower().translate(_SPELLED)
    plain = unicodedata.normalize("NFKD", spelled).encode("ascii", "ignore").decode()
    stem = re.sub(r"[^a-z0-9]+", "-", plain).strip("-") or otherwise
    names = (stem[: NAME_MAX - len(end)].rstrip("-") + end for end in _ends())
    return next(name for name in names if name not in taken)


def _ends() -> Iterator[str]:
    yield ""
    yield from (f"-{number}" for number in count(2))
