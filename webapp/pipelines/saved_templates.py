"""Saves pipelines as templates, and deletes such templates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from django.db import transaction

from pipeline_runtime.model.document import structural_faults
from pipeline_runtime.model.templates import template_names
from webapp.accounts.models import Role, User
from webapp.accounts.permissions import require
from webapp.audit.announcements import announce
from webapp.audit.records import audit
from webapp.pipelines.checking import fault_json
from webapp.pipelines.models import SavedTemplate
from webapp.pipelines.selectors import pipeline_named
from webapp.pipelines.shape import elements_of
from webapp.pipelines.templates import saved_template
from webapp.pipelines.titles import name_from
from webapp.problems import CORRECT, Conflict, Fault, Forbidden, Invalid

SAVED_MAX = 100  # the gallery loads all of them together with their documents


@transaction.atomic
def save_template(
    actor: User,
    pipeline: str,
    *,
    title: str,
    description: str,
    text: str,
    words: Mapping[str, str],
    replace: Sequence[str],
) -> SavedTemplate:
    """Makes a template of the pipeline's present draft. Raises Invalid and Conflict."""
    require(actor, Role.EDITOR, "save templates")
    draft = pipeline_named(pipeline).draft
    _check(draft, title, description, {*words, *replace})
    there = list(SavedTemplate.objects.only("name", "title"))
    if any(each.title.lower() == title.lower() for each in there):
        raise Conflict(
            f'A template "{title}" exists already.',
            safe="Nothing was saved.",
            next="Choose another title, or delete that template first.",
        )
    if len(there) >= SAVED_MAX:
        raise Conflict(
            f"{SAVED_MAX} templates are saved already, which is the most.",
            safe="Nothing was saved.",
            next="Delete a template that is no longer needed.",
        )
    saved = SavedTemplate.objects.create(
        name=name_from(title, {*template_names(), *(each.name for each in there)}, "template"),
        title=title,
        description=description,
        text=text,
        words={id: said.strip() for id, said in words.items() if said.strip()},
        replace=[element["id"] for element in elements_of(draft) if element["id"] in replace],
        document=draft,
        created_by=actor,
    )
    audit(actor, "template.save", saved.name, title=title, pipeline=pipeline)
    announce()
    return saved


def _check(draft: dict[str, object], title: str, description: str, named: set[str]) -> None:
    faults: list[Fault] = [fault_json(fault) for fault in structural_faults(draft)]
    if not faults and not elements_of(draft):
        faults = [_fault("spec.elements", "a template has at least one element")]
    unknown = sorted(named - {element["id"] for element in elements_of(draft)})
    if unknown:
        faults.append(_fault("words, replace", f"the pipeline has no element {unknown[0][:60]}"))
    if not title or not description:
        faults.append(_fault("title, description", "a template has a title and a description"))
    if faults:
        said = "; ".join(f"{fault['path']}: {fault['message']}" for fault in faults[:3])
        raise Invalid(
            f"The pipeline cannot be saved as a template: {said}.",
            safe="Nothing was saved.",
            next=CORRECT,
            faults=faults,
        )


def _fault(path: str, message: str) -> Fault:
    return {"element": None, "path": path, "message": message, "code": "invalid"}


@transaction.atomic
def delete_template(actor: User, name: str) -> None:
    """Deletes a template. Only its author and admins may do so. Raises Conflict for a template that comes
    with Fogline."""
    require(actor, Role.EDITOR, "delete templates")
    if name in template_names():
        raise Conflict(
            "This template comes with Fogline, so nobody can delete it.",
            safe="Nothing was deleted.",
            next="Delete a template that somebody saved.",
        )
    saved = saved_template(name, for_update=True)
    if saved.created_by_id != actor.pk and not Role(actor.role).covers(Role.ADMIN):
        by = saved.created_by.username if saved.created_by else "somebody else"
        raise Forbidden(
            f'The template "{saved.title}" was saved by {by}.',
            safe="Nothing was deleted.",
            next=f"Ask {by} or an admin to delete it.",
        )
    audit(actor, "template.delete", name, title=saved.title, document=saved.document)
    saved.delete()
    announce()
