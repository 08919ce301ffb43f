"""Laws of the errors that a user may look up: each has a page, and each is used."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pipeline_runtime.error_pages import FOLDER, pages
from pipeline_runtime.model.desired import ReplicaError
from pipeline_runtime.model.error_codes import AT_ELEMENTS, AT_START, ERRORS, IN_ANSWERS, IN_ORDERS
from webapp.api.problem_middleware import CODES
from webapp.problems import Problem

_PROJECT = Path(__file__).parents[3]


def _code_of_the_product(*folders: str) -> str:
    files = [
        file
        for folder in folders or ("pipeline_runtime", "workers", "webapp")
        for file in (_PROJECT / folder).rglob("*.py")
        if file.parent.name != "error_codes"
    ]
    return "\n".join(file.read_text(encoding="utf-8") for file in files)


def test_the_pages_are_what_the_table_says_now() -> None:
    there = {page.name: page.read_text(encoding="utf-8") for page in FOLDER.iterdir()}
    assert there == pages(), "run: make reference"


def test_no_code_stands_twice() -> None:
    assert len(ERRORS) == sum(map(len, (AT_ELEMENTS, IN_ANSWERS, IN_ORDERS, AT_START)))


@pytest.mark.parametrize("error", ERRORS.values(), ids=lambda error: error.code)
def test_an_error_is_told_in_whole_sentences_under_a_code_of_words(error) -> None:
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", error.code)
    assert not error.title.endswith(".")
    assert all(text.endswith(".") for text in (error.happened, error.safe, error.next))


@pytest.mark.parametrize("code", ERRORS)
def test_the_product_gives_each_code_somewhere(code: str) -> None:
    assert f'"{code}"' in _code_of_the_product()


def test_every_refusal_of_the_web_has_a_page() -> None:
    kinds = {kind.kind for kind in Problem.__subclasses__()}
    given = set(re.findall(r'\bcode="(csrf|[a-z-]+-[a-z-]+)"', _code_of_the_product("webapp")))
    assert kinds | given | set(CODES.values()) == {error.code for error in IN_ANSWERS}


def test_every_failure_of_an_order_and_of_a_start_has_a_page() -> None:
    control = _code_of_the_product("workers/control")
    orders = set(re.findall(r'\bcode="([a-z]+(?:-[a-z]+)+)"', control))
    orders |= set(re.findall(r'now_ms, "([a-z-]+)"', control)) | set(
        re.findall(r'"(positions-[a-z]+)"', control)
    )
    assert orders - {"kafka-away"} == {error.code for error in IN_ORDERS}
    starts = set(re.findall(r'told\(\s*"([a-z-]+)"', _code_of_the_product("workers/supervisor")))
    assert starts == {error.code for error in AT_START}


def test_every_error_that_a_node_shows_has_a_page() -> None:
    given = set(re.findall(r'ReplicaError\.of\(\s*"([a-z-]+)"', _code_of_the_product()))
    assert given
    assert given <= {error.code for error in AT_ELEMENTS}
    assert not re.findall(r"\bReplicaError\(\s*\w+=", _code_of_the_product()), "made without a code"


def test_an_error_takes_what_is_safe_and_what_to_do_from_the_table() -> None:
    error = ReplicaError.of("owner-replaced", "b owns it.", 7)
    known = ERRORS["owner-replaced"]
    assert (error.code, error.message, error.at_ms) == ("owner-replaced", "b owns it.", 7)
    assert (error.safe, error.next) == (known.safe, known.next)
