"""What people read for an encoding, in questions and in the import dialog."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from charset_normalizer.constant import IANA_SUPPORTED

from webapp.imports.encoding_words import ENCODINGS, encoding_words

WORDS = Path(__file__).resolve().parents[3] / "static" / "shared" / "files" / "words.ts"


def test_a_question_and_the_dialog_call_an_encoding_the_same() -> None:
    listed = re.search(r"const ENCODINGS.*?\];", WORDS.read_text(), re.DOTALL)
    assert listed is not None
    shown = dict(re.findall(r'\["([^"]+)", "([^"]+)"\]', listed[0]))
    both = shown.keys() & ENCODINGS.keys()
    assert len(both) >= 15
    assert {codec: shown[codec] for codec in both} == {codec: ENCODINGS[codec] for codec in both}


@pytest.mark.parametrize("codec", sorted(set(IANA_SUPPORTED)))
def test_no_encoding_is_asked_for_by_its_codec_alone(codec: str) -> None:
    words = encoding_words(codec)
    assert words[0].isupper()
    assert words != codec
