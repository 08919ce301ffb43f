from __future__ import annotations

from typing import Annotated

from django.http import HttpRequest, HttpResponse
from ninja import Router, Status
from pydantic import Field

from pipeline_runtime.model.document import ELEMENTS_MAX, NAME_MAX, TITLE_MAX
from webapp.api.accounts import Body
from webapp.api.authentication import actor
from webapp.api.pipelines import etag
from webapp.monitoring.board import pipeline_json
from webapp.monitoring.schemas import Pipeline
from webapp.pipelines import saved_templates
from webapp.pipelines.schemas import Template, TemplatePage
from webapp.pipelines.templates import create_from_template, template_page, templates

router = Router(tags=["templates"])


class NewTemplate(Body):
    pipeline: str = Field(max_length=NAME_MAX)
    title: str = Field(min_length=1, max_length=60)
    description: str = Field(min_length=1, max_length=500)
    text: str = Field("", max_length=20_000)
    words: dict[str, Annotated[str, Field(max_length=1000)]] = Field({}, max_length=ELEMENTS_MAX)
    replace: list[str] = Field([], max_length=ELEMENTS_MAX)


class FromTemplate(Body):
    name: str | None = None
    title: str = Field(default="", max_length=TITLE_MAX)
    mark: bool = False


@router.get("/templates", response=list[Template])
def list_templates(request: HttpRequest) -> list[Template]:
    """Lists documents to start from, each with the words on its card in the gallery."""
    return templates()


@router.get("/templates/{name}", response=TemplatePage)
def template(request: HttpRequest, name: str) -> TemplatePage:
    """Returns one template with its page: text in Markdown, and what each element does."""
    return template_page(name)


@router.post("/templates", response={201: TemplatePage})
def save_template(request: HttpRequest, body: NewTemplate) -> Status[TemplatePage]:
    """Saves the draft of `pipeline` as a template for everybody here.

    `description` stands on its card, `text` (Markdown) on its page. `words` says of elements what they do.
    `replace` names the elements that its users set for themselves: the editor marks them.
    """
    saved = saved_templates.save_template(
        actor(request),
        body.pipeline,
        title=" ".join(body.title.split()),
        description=body.description.strip(),
        text=body.text,
        words=body.words,
        replace=body.replace,
    )
    return Status(201, template_page(saved.name))


@router.delete("/templates/{name}", response={204: None})
def delete_template(request: HttpRequest, name: str) -> Status[None]:
    """Deletes a saved template: for the person who saved it, and for admins. Pipelines that were made of it
    stay."""
    saved_templates.delete_template(actor(request), name)
    return Status(204, None)


@router.post("/templates/{name}/pipelines", response={201: Pipeline})
def create_pipeline(
    request: HttpRequest, response: HttpResponse, name: str, body: FromTemplate | None = None
) -> Status[Pipeline]:
    """Creates a draft from the template, without pins to nodes that do not exist.

    `name` is the pipeline's. Without it, the pipeline gets a name that is made of `title`; without both, the
    template's name, or a free one like it. With `mark`, the elements of `replace` say so in the editor
    (`ui.replace`).
    """
    wanted = body or FromTemplate()
    pipeline = create_from_template(actor(request), name, wanted.name, title=wanted.title, mark=wanted.mark)
    response.headers["ETag"] = etag(pipeline.draft_revision)
    return Status(201, pipeline_json(pipeline))
