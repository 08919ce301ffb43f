"""Tells whether this process is alive, and whether the services that it needs answer."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import redis
from django.conf import settings
from django.db import connection
from django.http import HttpRequest, JsonResponse

from pipeline_runtime.kafka.health import check_broker
from webapp.backends.kafka import kafka_settings

TIMEOUT_S = 2.0


def check_database() -> None:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1 FROM accounts_user LIMIT 1")
            cursor.fetchall()
    finally:
        connection.close()  # this runs in a thread of its own


def check_redis() -> None:
    client = redis.Redis.from_url(
        settings.FOGLINE.redis_url, socket_connect_timeout=TIMEOUT_S, socket_timeout=TIMEOUT_S
    )
    try:
        client.ping()
    finally:
        client.close()


def check_kafka() -> None:
    check_broker(kafka_settings(), TIMEOUT_S)


CHECKS: dict[str, Callable[[], None]] = {
    "database": check_database,
    "redis": check_redis,
    "kafka": check_kafka,
}


def healthz(request: HttpRequest) -> JsonResponse:
    """Answers as soon as the process runs, even if Kafka is away: a supervisor must not restart the process
    because of that."""
    return JsonResponse({"status": "ok"})


def readyz(request: HttpRequest) -> JsonResponse:
    """Answers 503 when the database, Redis or Kafka does not answer within 2 s."""
    # Errors are told only by kind, since this page needs no login.
    found = {}
    with ThreadPoolExecutor(len(CHECKS)) as pool:
        running = {name: pool.submit(check) for name, check in CHECKS.items()}
        for name, check in running.items():
            try:
                check.result(timeout=TIMEOUT_S * 3)
                found[name] = "ok"
            except Exception as error:
                found[name] = f"away ({type(error).__name__})"
    ready = all(state == "ok" for state in found.values())
    return JsonResponse({"status": "ok" if ready else "unavailable", **found}, status=200 if ready else 503)
