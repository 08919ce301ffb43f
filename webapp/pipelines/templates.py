"""Templates that the engine ships, and pipelines that are made from them."""

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
from webapp.pipelines.models import Pipeline
from webapp.pipelines.schemas import Template, TemplatePage
from webapp.problems import Missing


@cache
def templates() -> list[Template]:
    return [_card(name) for name in template_names()]


def template_page(name: str) -> TemplatePage:
    _check(name)
    page = load_page(name)
    return {**_card(name), "text": page.text, "elements": page.elements}


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
        "document": document.to_data(),
    }


def _check(name: str) -> None:
    if name not in template_names():
        raise Missing(f'There is no template "{name}".', next="See the list of templates.")


@transaction.atomic
def create_from_template(
    actor: User, template: str, name: str | None = None, *, title: str = "", mark: bool = False
) -> Pipeline:
    """Creates a pipeline. `name` is its name; without one it gets one that is made of `title`, else the
    template's, or a free one like it. With `mark`, the elements that the user has to replace say so in the
    editor."""
    require(actor, Role.EDITOR, "create pipelines")
    _check(template)
    document = with_pins_that_fit(load_template(template).to_data())
    if mark:
        document = _marked(document, load_page(template).replace)
    if name is None and title:
        return create_pipeline(actor, None, document, title=title)
    if name is None:
        taken = set(Pipeline.objects.values_list("name", flat=True))
        name = next(each for each in _names_like(template) if each not in taken)
    return create_pipeline(actor, name, named(document, name))


def with_pins_that_fit(document: dict[str, Any]) -> dict[str, Any]:
    """Removes pins to nodes that are not registered. A template names the default nodes; without a pin, the
    planner chooses."""
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
    """Yields name, name-2, name-3 …"""
    yield name
    number = 2
    while True:
        yield f"{name[:_STEM_MAX]}-{number}"
        number += 1
