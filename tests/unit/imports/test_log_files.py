"""Files of many makers: Fogline reads each as its maker meant it, or asks a question."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pyarrow.parquet as pq

from tests.chosen import examples
from tests.oracles.log_files import Column, LogFile, log_file
from tests.oracles.plant_files import plant_file
from webapp.imports.answer import answered
from webapp.imports.convert import convert
from webapp.imports.detect import look
from webapp.imports.reading import Reading

FILES = examples(200)
PLANTS = examples(100)
WITHOUT_A_QUESTION_MIN = FILES * 9 // 10
MILLISECOND = timedelta(milliseconds=1)


def test_of_many_files_none_is_read_wrong_without_a_word(tmp_path: Path) -> None:
    asked, wrong = {}, {}
    for seed in range(FILES):
        file = log_file(seed)
        path = tmp_path / "file"
        path.write_bytes(file.data)
        detection = look(path, "file.csv").detection
        if not detection.questions:
            why = differs(path, detection.reading, file)
            if why:
                wrong[seed] = why
            continue
        asked[seed] = [question.id for question in detection.questions]
        [question] = detection.questions
        answers = [
            answered(detection.reading, detection.questions, {question.id: number})
            for number in range(len(question.choices))
        ]
        whys = [differs(path, reading, file) for reading in answers]
        if all(whys):
            wrong[seed] = f"no answer is right: {whys}"
    assert wrong == {}
    assert FILES - len(asked) >= WITHOUT_A_QUESTION_MIN, asked


def test_of_many_files_of_plants_each_is_read_right_without_a_question(tmp_path: Path) -> None:
    wrong = {}
    for seed in range(PLANTS):
        file = plant_file(seed)
        path = tmp_path / "file"
        path.write_bytes(file.data)
        detection = look(path, "file.csv").detection
        why = ", ".join(question.text for question in detection.questions)
        if why := why or differs(path, detection.reading, file):
            wrong[seed] = why
    assert wrong == {}


def differs(path: Path, reading: Reading, file: LogFile) -> str:
    """Returns what of the imported table is not as it was meant; "" if nothing is."""
    out = path.with_name("table.parquet")
    convert(path, reading, out, lambda *_: None, lambda: False)
    table = pq.read_table(out).to_pydict()
    times = table.get("_time", [])
    if any(table["_reject"]):
        return f"dead letters: {[why for why in table['_reject'] if why][:1]}"
    # Days of Excel with nine digits are exact to a tenth of a millisecond.
    if any(abs(found - meant) > MILLISECOND for found, meant in zip(times, file.times, strict=True)):
        return f"times: {times[:2]}, not {file.times[:2]} ({reading.time})"
    for column in file.columns:
        if (name := column.name if column.name in table else column.name.replace(" ", "_")) not in table:
            return f"no column {column.name}: {list(table)}"
        unit = next(each.unit for each in reading.columns if each.name == name)
        if unit not in (None, column.unit):
            return f"the unit of {column.name} is {unit}"
        if (found := differs_at(table[name], column)) is not None:
            row, value = found
            return f"{column.name}: {value!r}, not {column.values[row]!r} ({column.texts[row]!r})"
    return ""


def differs_at(values: list[object], column: Column) -> tuple[int, object] | None:
    for row, (found, meant) in enumerate(zip(values, column.values, strict=True)):
        if (
            isinstance(found, datetime)
            or found != meant
            or isinstance(found, bool) != isinstance(meant, bool)
        ):
            return row, found
    return None
