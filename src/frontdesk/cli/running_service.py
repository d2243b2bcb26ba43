"""Asks the service that runs on this machine, at the address of the settings."""

import contextlib
import http.client
import ssl
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from frontdesk.settings import Settings

_ANSWER_SECONDS = 10  # a service on a busy machine needs a moment
_MAX_BYTES = 10_000_000


def ask_service(settings: "Settings", path: str, token: str | None = None) -> tuple[int, str] | None:
    """The status and the body of an answer; None if nothing answers over HTTP."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(settings.host, settings.host)  # noqa: S104 - compared only
    connection: http.client.HTTPConnection
    if settings.tls_certificate is None:
        connection = http.client.HTTPConnection(host, settings.port, timeout=_ANSWER_SECONDS)
    else:  # whether callers can trust the certificate is another check
        unverified = ssl._create_unverified_context()  # noqa: S323
        connection = http.client.HTTPSConnection(host, settings.port, timeout=_ANSWER_SECONDS, context=unverified)
    with contextlib.suppress(OSError, http.client.HTTPException, ValueError), contextlib.closing(connection):
        connection.request("GET", path, headers={} if token is None else {"Authorization": f"Bearer {token}"})
        answer = connection.getresponse()
        return answer.status, answer.read(_MAX_BYTES).decode()
    return None
