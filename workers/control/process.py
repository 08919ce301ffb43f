"""The control process: commands, reports, work, desired state, the central store of checkpoints.

SIGTERM ends it within seconds. What was under way goes on at the next start, because every phase is in the
database before its effect is asked for.
"""

from __future__ import annotations

import logging
from datetime import timedelta

from celery import Celery
from django.db import close_old_connections
from django.utils import timezone

from pipeline_runtime.checkpoint.retention import Retention
from pipeline_runtime.kafka.clients import KafkaSettings
from pipeline_runtime.settings import Settings
from pipeline_runtime.wire import tasks
from webapp.audit.records import record_event
from webapp.backends.control_state import STORE
from webapp.moments import moment_of_ms
from webapp.nodes.models import Node
from webapp.placements.models import Deployment, Replica
from workers import messages
from workers.control.alarms.keeper import RuleKeeper
from workers.control.alarms.reader import AlertReader
from workers.control.alarms.sender import AlarmSender
from workers.control.checkpoints.central import CentralStore
from workers.control.checkpoints.trimming import Trimmer
from workers.control.context import ControlContext, Tuning
from workers.control.desired import DesiredSender
from workers.control.imports.keeper import ImportKeeper
from workers.control.reports.backlogs import Backlogs
from workers.control.reports.ingest import Ingest
from workers.control.walls import WallHistories
from workers.control.work import Work
from workers.lock import lock
from workers.stopping import Stopping, failed_by_threads, set_by_signals, wait_for

log = logging.getLogger(__name__)

KEPT_AFTER_END = timedelta(days=7)
"""How long the checkpoints of an undeployed pipeline are kept."""


class ControlProcess:
    def __init__(self, settings: Settings, tuning: Tuning | None = None) -> None:
        directory = settings.data / "central"
        directory.mkdir(parents=True, exist_ok=True)
        self._lock_file = lock(directory, "control")
        self._store = CentralStore(
            directory,
            settings.cluster_key,
            settings.host,
            settings.chunk_port,
            _is_forgotten,
            Retention(settings.checkpoints_kept, settings.checkpoints_hours),
            settings.disk_reserve_mb * 1_000_000,
            _alert,
        )
        app = messages.celery_app("fogline-control", settings.redis_url, tasks.CONTROL_QUEUE)
        self.context = ControlContext(
            settings=settings,
            kafka=KafkaSettings(settings.kafka, dict(settings.kafka_security)),
            app=app,
            central=self._store.database,
            tuning=tuning or Tuning(),
        )
        self.work = Work(self.context)
        self._ingest = Ingest(self.context, self._store.alerts)
        self._backlogs = Backlogs(self.context)
        self._desired = DesiredSender(self.context)
        self._trimmer = Trimmer(self.context, settings.trim_s)
        self._imports = ImportKeeper(self.context, directory)
        self._walls = WallHistories(self.context)
        self._alarms = (
            AlertReader(self.context),
            RuleKeeper(self.context),
            AlarmSender(self.context),
        )
        register_commands(app, self.context, self.work)
        self._commands = messages.CommandReceiver(app, "control", threads=4)

    def run(self) -> int:
        """Runs until SIGTERM, SIGINT or an error that ends one of its threads. Returns the exit code."""
        stopping = Stopping()
        set_by_signals(stopping)
        failed_by_threads(stopping)
        self.start()
        log.info("control is up")
        wait_for(stopping)
        self.close()
        return stopping.code

    def start(self) -> None:
        for name in self.context.settings.nodes:
            Node.objects.get_or_create(name=name)  # nodes that are started on this machine need no token
        self._store.start()
        self._ingest.start()
        self._backlogs.start()
        self._desired.start()
        self.work.start()
        self._trimmer.start()
        self._imports.start()
        self._walls.start()
        for each in self._alarms:
            each.start()
        self._commands.start()

    def close(self) -> None:
        self.context.closing.set()
        self.context.reports.notify()
        self.context.desired.notify()
        self.context.work.notify()
        self.context.files.notify()
        self._commands.stop(timeout_s=1.0)
        self.work.join(3.0)
        self._ingest.join(3.0)
        self._backlogs.join(3.0)
        self._desired.join(2.0)
        self._trimmer.join(2.0)
        self._imports.join(3.0)
        self._walls.join(3.0)
        for each in self._alarms:
            each.join(3.0)
        self._store.close()
        self._lock_file.close()
        log.info("control has stopped; what was under way goes on at the next start")


def register_commands(app: Celery, context: ControlContext, work: Work) -> None:
    """Registers the tasks that the web sends.

    They come late, twice or never, so each only says "look now".
    """

    @app.task(name=tasks.OPERATION, shared=False)
    def operation(operation_id: str) -> None:
        work.operation(operation_id)

    @app.task(name=tasks.HANDOVER, shared=False)
    def handover(handover_id: str) -> None:
        work.handover(handover_id)

    @app.task(name=tasks.LOOK, shared=False)
    def look() -> None:
        work.look()

    @app.task(name=tasks.DESIRED_CHANGED, shared=False)
    def desired_changed() -> None:
        context.desired.notify()

    @app.task(name=tasks.FILES, shared=False)
    def files() -> None:
        context.files.notify()

    @app.task(name=tasks.LETTERS, shared=False)
    def letters(deployment: str, element: str) -> None:
        work.letters(deployment, element)

    @app.task(name=tasks.CHECKPOINT, shared=False)
    def checkpoint(deployment: str, group: str) -> None:
        close_old_connections()
        owners = Replica.objects.select_related("node").filter(
            deployment=deployment, group=group, role="owner", node__up=True
        )
        for row in owners:
            queue = tasks.node_queue(row.node.name)
            messages.send(app, tasks.NODE_CHECKPOINT, [f"{deployment}.{group}"], queue)


def _alert(text: str) -> None:
    """Records that something is wrong with the central store. It goes on, and so do the pipelines."""
    close_old_connections()
    record_event(STORE, text, severity="error")


def _is_forgotten(group: str, newest_at_ms: int) -> bool:
    """Returns whether the checkpoints of a group may go: its deployment ended more than KEPT_AFTER_END ago.

    A deployment that is not in the database may have been deleted, or the database may be the wrong one. Then
    the time counts from the newest checkpoint. The same holds for a group that was removed from a deployment
    that runs.
    """
    close_old_connections()
    id, _, name = group.partition(".")
    deployment = Deployment.objects.filter(pk=id).first()
    if deployment is None or name in deployment.gone:
        return timezone.now() - moment_of_ms(newest_at_ms) > KEPT_AFTER_END
    return deployment.ended_at is not None and timezone.now() - deployment.ended_at > KEPT_AFTER_END
