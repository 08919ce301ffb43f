"""Compresses the API's answers if that reveals nothing.

Equal texts compress better. So an attacker may guess a secret from the length of compressed answers (BREACH).
For that, the attacker makes a signed-in browser send requests, and puts words of their own into the answer
beside the secret.

So this module does not compress answers that hold a secret or other people's words: pages and /me (the CSRF
token, although Django masks it freshly each time), answers to changes (a new API token, an enrolment), errors
(they repeat the request), and the records of streams. Django's middleware varies the length of the other
answers by chance.
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
