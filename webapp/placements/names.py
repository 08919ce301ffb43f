"""The names of deployments' elements and groups that users see, for code that reports on many of them."""

from __future__ import annotations

from pipeline_runtime.model.ids import document_group
from webapp.pipelines.shape import names_of
from webapp.placements.models import Deployment


class Names:
    """Valid for one moment. A deployment's document, which is large, is read once, and only when it is
    needed."""

    def __init__(self) -> None:
        self._known: dict[str, dict[str, str]] = {}

    def of(self, deployment: str, id: str) -> str:
        if deployment not in self._known:
            row = Deployment.objects.select_related("version").filter(pk=deployment).first()
            self._known[deployment] = names_of(row.version.document) if row is not None else {}
        return self._known[deployment].get(document_group(id), document_group(id))
