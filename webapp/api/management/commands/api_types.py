"""Prints the browser's types of the REST API and of the live messages."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from webapp.api.typescript import api_types


class Command(BaseCommand):
    help = "Print static/shared/api.gen.ts."

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write(api_types(), ending="")
