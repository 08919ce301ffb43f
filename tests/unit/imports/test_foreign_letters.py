"""Few letters beyond ASCII: the encoding is found where they say it, and asked where two texts make sense."""

from __future__ import annotations

from pathlib import Path

import pytest

from webapp.imports.answer import answered
from webapp.imports.detect import look
from webapp.imports.encoding import candidates

CENTRAL = (
    "stół, był, imię, koń, węgl, ść, ciśnienie, że, Łódź, °C przepływ, čas, hůř, "
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
def test_known_words_of_central_europe_are_no_question(word: str) -> None:
    assert texts_of(word, "cp1250") == [word]


@pytest.mark.parametrize("word", WESTERN.split(", "))
def test_words_of_western_europe_are_no_question(word: str) -> None:
    assert texts_of(word, "cp1252") == [word]


@pytest.mark.parametrize("encoding", ["cp850", "mac_roman"])
@pytest.mark.parametrize("word", ["°C", "Temp °C", "Prüfung größer"])
def test_a_sign_before_c_is_no_letter(word: str, encoding: str) -> None:
    assert texts_of(word, encoding) == [word]


@pytest.mark.parametrize(
    ("encoding", "words"),
    [
        ("cp1252", "tête køling être fenêtre São août naïve Blæser “quoted” it’s £5 œuvre ação"),
        ("iso8859_2", "ściana tężnia šířka hőmérséklet šum žluťoučký"),
        ("cp1254", "basınç sıcaklık değer şehir ölçüm"),
        ("cp1257", "temperatūra slėgis"),
        ("cp1251", "температура тиск"),
        ("koi8_r", "давление"),
        ("cp866", "температура"),
        ("cp1253", "θερμοκρασία"),
        ("cp1255", "טמפרטורה"),
        ("cp1256", "الحرارة"),
        ("cp850", "Größe Durchfluß m³ køling"),
        ("mac_roman", "Größe température"),
    ],
)
def test_a_known_word_or_a_sign_at_its_place_is_no_question(encoding: str, words: str) -> None:
    assert {word: texts_of(word, encoding) for word in words.split()} == {
        word: [word] for word in words.split()
    }


@pytest.mark.parametrize(
    ("encoding", "words"),
    [
        ("cp1252", "Kläffer pêne Gebläse hêtre oblò køkkenet sjöar"),
        ("cp1250", "rzęsa ślimak ječný ťažký šarka bőrönd lâncă"),
        ("iso8859_2", "ślimak ťažký šarka"),
        ("cp852", "rzęsa ślimak"),
        ("mac_roman", "Gebläse évier"),
        ("cp850", "Gebläse lèvre"),
        ("cp1254", "ıslak ırmak"),
        ("cp1251", "гайка ведро"),
        ("koi8_r", "гайка ведро"),
        ("cp1253", "κλειδί σωλήνας"),
        ("cp1255", "ברז דלת"),
        ("cp932", "温度 測定値"),
        ("gb18030", "温度 压力传感器"),
        ("big5", "溫度 壓力感測器"),
        ("euc_jp", "温度測定"),
        ("cp949", "온도"),
    ],
)
def test_a_lone_word_that_is_not_known_is_read_right_or_among_the_answers(encoding: str, words: str) -> None:
    for word in words.split():
        assert word in texts_of(word, encoding)


def test_what_makes_sense_in_two_encodings_is_asked() -> None:
    assert set(texts_of("pêne", "cp1252")) >= {"pêne", "pęne"}
    assert set(texts_of("rzęsa", "cp1250")) >= {"rzęsa", "rzêsa"}


@pytest.mark.parametrize("form", ['{{"{0}": "2024-05-01 00:00:00", "v": 1}}', '[{{"{0}": "2024-05-01"}}]'])
def test_json_asks_for_its_encoding_as_well(tmp_path: Path, form: str) -> None:
    path = tmp_path / "file.json"
    path.write_bytes(form.format("rzęsa").encode("cp1250") + b"\n")
    found = look(path, path.name).detection
    [asked] = found.questions
    names = []
    for at in range(len(asked.choices)):
        reading = answered(found.reading, [asked], {asked.id: at})
        assert reading.time is not None
        assert reading.time.columns == (reading.columns[0].source,) == (reading.columns[0].name,)
        names.append(reading.columns[0].name)
    assert {"rzęsa", "rzêsa"} <= set(names)
