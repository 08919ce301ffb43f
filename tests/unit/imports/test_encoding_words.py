"""Tests the names that users see for encodings, in questions and in the import dialog."""

from __future__ import annotations

import pytest
from charset_normalizer.constant import IANA_SUPPORTED

from webapp.imports.encoding_words import encoding_words, offered


def test_what_a_question_offers_can_be_chosen_in_the_dialog_by_the_same_words() -> None:
    for codec in ("cp1252", "iso8859_7", "hz"):
        assert offered(codec)[codec] == encoding_words(codec)
    assert len(offered("utf-8")) >= 20


@pytest.mark.parametrize("codec", sorted(set(IANA_SUPPORTED)))
def test_no_encoding_is_asked_for_by_its_codec_alone(codec: str) -> None:
    words = encoding_words(codec)
    assert words[0].isupper()
    assert words != codec
