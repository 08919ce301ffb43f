"""Laws of the documentation page."""

from pipeline_runtime.operators.reference import PAGE, page
from pipeline_runtime.operators.registry import BUILT_IN
from tests.unit.operators.conftest import schema_of


def test_the_page_is_what_the_operators_say_now():
    hint = "run: python -m pipeline_runtime.operators.reference"
    assert PAGE.read_text(encoding="utf-8") == page(), hint


def test_every_operator_is_on_the_page():
    assert all(f"\n## {type_}\n" in page() for type_ in BUILT_IN)


def test_the_example_of_how_to_write_an_operator_works(run):
    text = (PAGE.parents[1] / "how-to" / "add-an-operator.md").read_text(encoding="utf-8")
    module: dict = {}
    exec(text.split("```python")[1].split("```")[0], module)
    clip = module["Clip"](module["ClipParams"].model_validate(module["Clip"].example))
    found = run(clip, [(0, -1), (1, 7), (2, 101)], schema_of(value="integer"))
    assert [row["value"] for row in found] == [0, 7, 100]
