"""Laws of the pages of templates: each says of its document what there is, and nothing else."""

import pytest

from pipeline_runtime.model.document import parse_document
from pipeline_runtime.model.faults import DocumentInvalid
from pipeline_runtime.model.templates import load_page, load_template, template_names
from pipeline_runtime.model.templates.page import parse_page
from pipeline_runtime.operators.registry import default_registry

FRONT = "title: A\nshows: b\nruns: c\ndata: d\nreplace: [one]"
PAGE = f"""---
{FRONT}
---
First words.

- a list that is none of elements

## Element by element

- `one`: does this
  and that.

  Also *more*.
- `two`: ends it.

Last words.
"""


@pytest.mark.parametrize("name", template_names())
def test_a_page_has_each_element_of_its_document_once_and_says_something_of_it(name):
    page, document = load_page(name), load_template(name)
    ids = [element.id for element in document.spec.elements]
    assert sorted(page.elements) == sorted(ids)
    assert all(page.elements.values())
    assert page.text
    assert set(page.replace) <= set(ids)


@pytest.mark.parametrize("name", template_names())
def test_what_is_to_be_replaced_is_a_source(name):
    document = load_template(name)
    for id in load_page(name).replace:
        assert default_registry().get(document.element(id).type).category == "sources"


@pytest.mark.parametrize("name", template_names())
def test_each_element_of_a_template_has_a_place_for_its_picture(name):
    for element in load_template(name).spec.elements:
        assert {"x", "y"} <= element.ui.model_dump().keys()


def test_a_page_is_its_words_and_its_elements():
    page = parse_page(PAGE)
    assert (page.title, page.shows, page.runs, page.data, page.replace) == ("A", "b", "c", "d", ("one",))
    assert page.text == "First words.\n\n- a list that is none of elements\n\nLast words."
    assert page.elements == {"one": "does this\nand that.\n\nAlso *more*.", "two": "ends it."}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("no front", "front matter"),
        (PAGE.replace("shows: b", "show: b"), 'show: unknown field "show"; did you mean "shows"'),
        (PAGE.replace("runs: c\n", ""), "runs: this is required"),
        (PAGE.replace("title: A", "title: [A"), "cannot be read: line"),
        (PAGE.replace("`two`", "`one`"), '"one" is there twice'),
        (PAGE.replace("[one]", "[One]"), r"replace\[0\]"),
    ],
)
def test_a_page_that_is_wrong_says_why(text, words):
    with pytest.raises(ValueError, match=words):
        parse_page(text)


def test_what_no_template_is_has_no_page():
    with pytest.raises(LookupError, match="machine-power"):
        load_page("nothing")


@pytest.mark.parametrize("mark", [True, None])
def test_an_element_of_a_document_may_say_that_it_is_to_be_replaced(mark):
    parse_document(_with({"x": 1, "y": 2, "replace": mark}))


def test_anything_else_is_no_such_mark():
    with pytest.raises(DocumentInvalid) as caught:
        parse_document(_with({"x": 1, "y": 2, "replace": "yes"}))
    (fault,) = caught.value.faults
    assert (fault.element, fault.path) == ("one", "spec.elements[0].ui.replace")


def _with(ui):
    elements = [{"id": "one", "type": "generator", "ui": ui}]
    return {"metadata": {"name": "p"}, "spec": {"elements": elements}}
