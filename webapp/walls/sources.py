"""Finds the topics of the streams that tiles name."""

from __future__ import annotations

from collections.abc import Iterable

from webapp.monitoring.streams import not_deployed, stream_in
from webapp.pipelines.models import Pipeline
from webapp.placements.models import Deployment
from webapp.problems import Missing
from webapp.walls.tiles import Stream


class Sources:
    """Some pipelines as they are deployed, read with two queries for all their streams."""

    def __init__(self, pipelines: Iterable[str]) -> None:
        rows = Pipeline.objects.filter(name__in=set(pipelines)).select_related("updated_by")
        self.pipelines = {row.name: row for row in rows}
        active = Deployment.objects.filter(pipeline__in=rows, status__in=Deployment.ACTIVE)
        self._deployments = {row.pipeline_id: row for row in active.select_related("version")}
        self._found: dict[tuple[str, str], tuple[str, str]] = {}

    def stream(self, wanted: Stream) -> tuple[str, str]:
        """Returns the stream (`element.port`) and its topic. Raises Missing and Conflict."""
        asked = (wanted.pipeline, wanted.stream)
        if asked not in self._found:
            row = self.pipelines.get(wanted.pipeline)
            if row is None:
                raise Missing(
                    f'There is no pipeline "{wanted.pipeline}".', next="Choose another pipeline for the tile."
                )
            deployment = self._deployments.get(row.pk)
            if deployment is None:
                raise not_deployed(row.title)
            self._found[asked] = stream_in(deployment, row.title, wanted.stream)
        return self._found[asked]
