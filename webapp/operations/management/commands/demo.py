"""Creates and deploys the demo pipeline when there is no pipeline yet."""

from __future__ import annotations

import time
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from pipeline_runtime.model.templates import load_template
from webapp.accounts.models import Role, User
from webapp.nodes.models import Node
from webapp.operations.actions import deploy
from webapp.operations.models import Operation
from webapp.pipelines.actions import create_pipeline
from webapp.pipelines.models import Pipeline
from webapp.pipelines.templates import with_pins_that_fit
from webapp.problems import Problem

NAME = "machine-power"
POLL_S = 0.5
ENDED = (Operation.Status.DONE, Operation.Status.FAILED)


class Command(BaseCommand):
    help = f"Create and deploy the pipeline {NAME} when there is no pipeline yet, and wait until it runs."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--timeout", type=float, default=180.0, help="seconds (default 180)")
        parser.add_argument("--no-wait", action="store_true", help="do not wait until it runs")

    def handle(self, *args: Any, **options: Any) -> None:
        if Pipeline.objects.exists():
            self.stdout.write("There are pipelines already: the demo is not created.")
            return
        deadline = time.monotonic() + options["timeout"]
        actor = User.objects.filter(role=Role.ADMIN, is_active=True).order_by("pk").first()
        if actor is None:
            raise CommandError("There is no admin account: run `manage.py ensure_admin` first.")
        self._wait_for_nodes(deadline)
        document = with_pins_that_fit(load_template(NAME).to_data())
        try:
            create_pipeline(actor, NAME, document)
            operation = deploy(actor, NAME)
        except Problem as problem:
            faults = "; ".join(f"{fault['path']}: {fault['message']}" for fault in problem.faults)
            raise CommandError(f"{problem.detail} {faults}".strip()) from problem
        if not options["no_wait"]:
            self._wait_for(operation, deadline)

    def _wait_for_nodes(self, deadline: float) -> None:
        """Waits until the nodes of FOGLINE_NODES are ready. When time is short, it goes on with those that
        are."""
        wanted = set(settings.FOGLINE.nodes)
        patience = deadline - (deadline - time.monotonic()) / 2
        while True:
            ready = set(Node.objects.filter(up=True, ready=True).values_list("name", flat=True))
            if (wanted <= ready and ready) or (ready and time.monotonic() > patience):
                return
            if time.monotonic() > deadline:
                missing = ", ".join(sorted(wanted - ready)) or "any"
                raise CommandError(f"No node is ready (waited for {missing}): the demo was not created.")
            time.sleep(POLL_S)

    def _wait_for(self, operation: Operation, deadline: float) -> None:
        while operation.status not in ENDED:
            if time.monotonic() > deadline:
                self.stdout.write(f"{NAME} is still being deployed; the dashboard shows how far it is.")
                return
            time.sleep(POLL_S)
            operation.refresh_from_db()
        if operation.status == Operation.Status.FAILED:
            raise CommandError(f"{NAME} could not be deployed: {operation.message}")
        self.stdout.write(f"{NAME} is running.")
