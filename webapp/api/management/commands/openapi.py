"""Prints the REST API's OpenAPI document."""

from __future__ import annotations

import json
from typing import Any

from django.core.management.base import BaseCommand

from webapp.api.api import api


class Command(BaseCommand):
    help = "Print the OpenAPI document of the REST API as JSON."

    def handle(self, *args: Any, **options: Any) -> None:
        schema = api.get_openapi_schema(path_prefix="/api/v1/")
        self.stdout.write(json.dumps(schema, indent=2, default=str))
