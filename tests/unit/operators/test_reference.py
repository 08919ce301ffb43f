"""Laws of the documentation page."""

import re
import sys
from types import ModuleType

import pytest

from pipeline_runtime.operators.reference import PAGE, page
from pipeline_runtime.operators.registry import BUILT_IN
from tests.unit.operators.conftest import schema_of


def test_the_page_is_what_the_operators_say_now():
    hint = "run: python -m pipeline_runtime.operators.reference"
    assert PAGE.read_text(encoding="utf-8") == page(), hint


def test_every_operator_is_on_the_page():
    assert all(f"\n## {type_}\n" in page() for type_ in BUILT_IN)


def parameters():
    """Returns (operator, parameter, type, default, allowed, what it is) of each line of the tables."""
    for section in page().split("\n## ")[1:]:
        for line in re.findall(r"^\| (`[^`]+` \|.*) \|$", section, re.MULTILINE):
            cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)]
            if len(cells) == 5:
                yield section.split("\n")[0], *cells


def test_every_parameter_says_what_it_is():
    assert [found[:2] for found in parameters() if not found[-1]] == []


def test_texts_lists_and_whole_numbers_have_bounds():
    bounded = ("string", "expression", "path", "list", "integer")
    found = [each[:2] for each in parameters() if each[2].split(" ")[0] in bounded and not each[4]]
    assert len(list(parameters())) > 100
    assert found == []


@pytest.fixture(scope="module")
def clip():
    """Returns a function that makes the operator that the documentation shows, of its parameters."""
    text = (PAGE.parents[1] / "how-to" / "add-an-operator.md").read_text(encoding="utf-8")
    module = ModuleType("clip_of_the_documentation")
    sys.modules[module.__name__] = module  # where pydantic looks for what the annotations name
    exec(text.split("```python")[1].split("```")[0], vars(module))
    yield lambda **params: module.Clip(module.ClipParams.model_validate(module.Clip.example | params))
    del sys.modules[module.__name__]


@pytest.mark.parametrize(
    ("type_", "limits", "given", "expected"),
    [
        ("integer", {}, [-1, 7, 101], [0, 7, 100]),
        ("integer", {}, [None], [None]),
        ("integer", {"low": 0.5, "high": 1.5}, [0, 1, 2], [1, 1, 1]),
        ("integer", {"high": 2**60}, [2**53 + 1, 2**60 + 1], [2**53 + 1, 2**60]),
        ("number", {"low": 0.5}, [None, 0.0, 0.5, 7.25, 100.5], [None, 0.5, 0.5, 7.25, 100.0]),
    ],
)
def test_the_example_of_how_to_write_an_operator_works(run, clip, type_, limits, given, expected):
    found = run(clip(**limits), list(enumerate(given)), schema_of(value=type_))
    assert [row["value"] for row in found] == expected


@pytest.mark.parametrize(
    ("type_", "limits", "paths"),
    [
        ("string", {}, ["params.column"]),
        ("number", {"low": 5, "high": 1}, ["params.low"]),
        ("number", {"high": 1e19}, None),
        ("integer", {"low": 0.2, "high": 0.8}, ["params.low"]),
        ("integer", {"low": -1e19, "high": 1e19}, ["params.low", "params.high"]),
    ],
)
def test_the_example_refuses_limits_that_no_value_can_keep(clip, mismatch, type_, limits, paths):
    inputs = {"in": schema_of(value=type_)}
    if paths is None:
        assert clip(**limits).output_schema(inputs) == inputs["in"]
    else:
        assert mismatch(clip(**limits), **inputs) == paths
