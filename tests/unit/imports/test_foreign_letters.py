"""Few letters beyond ASCII: the encoding is found where they say it, and asked where two texts make sense."""

from __future__ import annotations

import pytest

from webapp.imports.encoding import candidates

CENTRAL = (
    "stół, był, imię, koń, węgl, ść, koś, ciśnienie, że, Łódź, °C przepływ, čas, hůř, "
    "teplota měření č. 5, řízení, mérés időpont, šířka"
)
WESTERN = (
    "Prüfung größer, Température arrêté, m³/h, Nm³, 10³, °C, 5 µm, año, Año;Mes;Día, måling, Tryk på køling, "
    "lämpötila, français, ©, Größe m² Fläche, TÜV, kWh/m², ±0.5, Durchfluß, Öl"
)


def texts_of(word: str, encoding: str) -> list[str]:
    """Returns what the encodings that are found or asked make of a file's only foreign word."""
    data = "time;v;x\n" + "".join(f"2024-05-01;{at};{word}\n" for at in range(12))
    found = candidates(data.encode(encoding))
    return [word.encode(encoding).decode(each, errors="replace") for each in found]


@pytest.mark.parametrize("word", CENTRAL.split(", "))
def test_words_of_central_europe_are_among_the_answers(word: str) -> None:
    found = texts_of(word, "cp1250")
    assert word in found
    assert len(found) > 1


@pytest.mark.parametrize("word", WESTERN.split(", "))
def test_words_of_western_europe_are_no_question(word: str) -> None:
    assert texts_of(word, "cp1252") == [word]


@pytest.mark.parametrize("encoding", ["cp850", "mac_roman"])
@pytest.mark.parametrize("word", ["°C", "Temp °C", "Prüfung größer"])
def test_a_sign_before_c_is_no_letter(word: str, encoding: str) -> None:
    assert texts_of(word, encoding) == [word]


@pytest.mark.parametrize(
    ("encoding", "word"), [("cp850", "Durchfluß"), ("cp850", "m³"), ("cp1252", "£5.00"), ("cp1252", "tête")]
)
def test_what_two_encodings_read_as_likely_letters_is_asked(encoding: str, word: str) -> None:
    found = texts_of(word, encoding)
    assert word in found
    assert len(found) > 1
