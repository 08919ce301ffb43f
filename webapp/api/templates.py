from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from ninja import Router, Status
from pydantic import Field

from pipeline_runtime.model.document import TITLE_MAX
from webapp.api.accounts import Body
from webapp.api.authentication import actor
from webapp.api.pipelines import etag
from webapp.monitoring.board import pipeline_json
from webapp.monitoring.schemas import Pipeline
from webapp.pipelines.schemas import Template, TemplatePage
from webapp.pipelines.templates import create_from_template, template_page, templates

router = Router(tags=["templates"])


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
