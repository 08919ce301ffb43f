"""Compresses the API's answers where that reveals nothing.

An attacker who can make a signed-in browser send requests, put words of his own into the answer and see the
answer's length may guess a secret beside those words, since equal texts compress better (BREACH). So answers
with a secret or with the words of others are sent as they are: pages and /me (the CSRF token, though Django
masks it freshly each time), answers to changes (a new API token, an enrolment), errors (they repeat the
request), and the records of streams. The length of the others varies by chance, which Django's middleware
sees to.
"""

from __future__ import annotations

import re

from django.http import HttpRequest, HttpResponseBase
from django.middleware.gzip import GZipMiddleware

_BYTES_MIN = 1024  # a smaller answer fits the packets that are sent anyway
_PLAIN = re.compile(r"/api/v1/(me|pipelines/[^/]+/streams/.*)")


class ApiCompressionMiddleware(GZipMiddleware):
    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        return super().process_response(request, response) if _is_safe(request, response) else response


def _is_safe(request: HttpRequest, response: HttpResponseBase) -> bool:
    return (
        request.method == "GET"
        and request.path.startswith("/api/")
        and not _PLAIN.fullmatch(request.path)
        and response.status_code == 200
        and not response.streaming  # a file, which is read while it is sent
        and response.headers.get("Content-Type", "").startswith("application/json")
        and len(response.content) >= _BYTES_MIN
    )
