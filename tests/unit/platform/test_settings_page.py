"""Laws of the page of settings: it says what the declarations say, of every variable that Fogline reads."""

from __future__ import annotations

import re
from pathlib import Path

from pipeline_runtime.settings import Settings
from pipeline_runtime.settings_page import PAGE, READ_ELSEWHERE, field_docstrings, page, variable

_PROJECT = Path(__file__).parents[3]
_READ = re.compile(r"""environ(?:\.get\(|\[)\s*"(FOGLINE_\w+)"(?!\]\s*=)""")
_BETWEEN_PROCESSES = re.compile("FOGLINE_WORKER_")


def test_the_page_is_what_the_declarations_say_now() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: make reference"


def test_every_setting_has_a_description_in_whole_sentences() -> None:
    descriptions = field_docstrings()
    assert set(descriptions) == set(Settings.model_fields)
    assert [name for name, text in descriptions.items() if not re.match(r"[A-Z`].*\.$", text)] == []


def test_every_variable_that_the_code_reads_is_on_the_page() -> None:
    found = {
        name
        for folder in ("pipeline_runtime", "workers", "webapp")
        for file in (_PROJECT / folder).rglob("*.py")
        for name in _READ.findall(file.read_text(encoding="utf-8"))
        if not _BETWEEN_PROCESSES.match(name)
    }
    assert found, "the expression finds nothing any more"
    assert found <= {*map(variable, Settings.model_fields), *READ_ELSEWHERE}
