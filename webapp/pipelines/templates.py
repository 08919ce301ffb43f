"""Lists templates (shipped ones and saved ones), and creates pipelines from them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import cache
from typing import Any

from django.db import transaction

from pipeline_runtime.model.document import NAME_MAX
from pipeline_runtime.model.templates import load_page, load_template, template_names
from webapp.accounts.models import Role, User
from webapp.accounts.permissions import require
from webapp.nodes.models import Node
from webapp.pipelines.actions import create_pipeline, named
from webapp.pipelines.models import Pipeline, SavedTemplate
from webapp.pipelines.schemas import Template, TemplatePage
from webapp.pipelines.shape import elements_of
from webapp.problems import Missing


def templates() -> list[Template]:
    """Returns the saved templates, followed by the shipped ones."""
    saved = SavedTemplate.objects.select_related("created_by")
    return [*(_saved_card(each) for each in saved), *_shipped()]


@cache
def _shipped() -> list[Template]:
    return [_card(name) for name in template_names()]


def template_page(name: str) -> TemplatePage:
    if name in template_names():
        page = load_page(name)
        return {**_card(name), "text": page.text, "elements": page.elements}
    saved = saved_template(name)
    words = {element["id"]: saved.words.get(element["id"], "") for element in elements_of(saved.document)}
    return {**_saved_card(saved), "text": saved.text, "elements": words}


def saved_template(name: str, *, for_update: bool = False) -> SavedTemplate:
    """Returns a saved template. Raises Missing."""
    rows = SavedTemplate.objects.select_related("created_by")
    found = (rows.select_for_update(of=("self",)) if for_update else rows).filter(name=name).first()
    if found is None:
        raise Missing(f'There is no template "{name[:60]}".', next="See the list of templates.")
    return found


def _saved_card(saved: SavedTemplate) -> Template:
    return {
        "name": saved.name,
        "title": saved.title,
        "description": saved.description,
        "shows": "",
        "runs": "",
        "data": "",
        "replace": list(saved.replace),
        "made": {
            "by": saved.created_by.username if saved.created_by else None,
            "at": saved.created_at.isoformat(),
        },
        "document": saved.document,
    }


def _card(name: str) -> Template:
    page, document = load_page(name), load_template(name)
    return {
        "name": name,
        "title": page.title,
        "description": document.metadata.description or "",
        "shows": page.shows,
        "runs": page.runs,
        "data": page.data,
        "replace": list(page.replace),
        "made": None,
        "document": document.to_data(),
    }


def _source(name: str) -> tuple[dict[str, Any], Collection[str]]:
    """Returns the template's document, and the elements that its user replaces. Raises Missing."""
    if name in template_names():
        return load_template(name).to_data(), load_page(name).replace
    saved = saved_template(name)
    return saved.document, saved.replace


@transaction.atomic
def create_from_template(
    actor: User, template: str, name: str | None = None, *, title: str = "", mark: bool = False
) -> Pipeline:
    """Creates a pipeline from a template. Without `name`, the pipeline's name is made from `title`. Without
    both, it is the template's name, or a free name like it. With `mark`, the editor marks the elements that
    the user has to replace."""
    require(actor, Role.EDITOR, "create pipelines")
    document, replaced = _source(template)
    document = with_pins_that_fit(document)
    if mark:
        document = _marked(document, replaced)
    if name is None and title:
        return create_pipeline(actor, None, document, title=title)
    if name is None:
        taken = set(Pipeline.objects.values_list("name", flat=True))
        name = next(each for each in _names_like(template) if each not in taken)
    return create_pipeline(actor, name, named(document, name))


def with_pins_that_fit(document: dict[str, Any]) -> dict[str, Any]:
    """Removes pins to nodes that are not registered. A template names the default nodes. Without a pin, the
    planner chooses a node."""
    known = set(Node.objects.values_list("name", flat=True))
    elements = [
        {key: value for key, value in element.items() if key != "node" or value in known}
        for element in document["spec"]["elements"]
    ]
    return {**document, "spec": {**document["spec"], "elements": elements}}


def _marked(document: dict[str, Any], replaced: Collection[str]) -> dict[str, Any]:
    elements = [
        {**element, "ui": {**element.get("ui", {}), "replace": True}}
        if element["id"] in replaced
        else element
        for element in document["spec"]["elements"]
    ]
    return {**document, "spec": {**document["spec"], "elements": elements}}


_STEM_MAX = NAME_MAX - 4  # room for "-999"


def _names_like(name: str) -> Iterator[str]:
    """Yields name, name-2, name-3 and so on."""
    yield name
    number = 2
    while True:
        yield f"{name[:_STEM_MAX]}-{number}"
        number += 1
