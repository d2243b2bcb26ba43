"""/metrics: numbers for operators in Prometheus' text format, for whoever knows the token.

Made of the request log, so that the two never disagree: the operation, the door, the status and the time it took. No
practice, client, patient or address is in them, and the number of series is bounded by the code.
A server's workers write down what they have counted; whichever is asked adds it all up.
"""

import asyncio
import contextlib
import hmac
import logging
import os
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from typing import Any, Protocol

import orjson
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from frontdesk.domain.errors import Problem
from frontdesk.doors.request_log import RequestLabels
from frontdesk.settings import Settings

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_PUBLISH_SECONDS = 1.0
_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_log = logging.getLogger(__name__)

Snapshot = dict[str, Any]


class RequestCounts:
    """Observes the request log."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, str, str]] = Counter()
        self.times: dict[tuple[str, str], list[float]] = {}  # requests per bucket, the slower ones, the sum of seconds

    def count(self, labels: RequestLabels, milliseconds: float, _request_id: str | None) -> None:
        door, operation = labels.door, labels.operation or ""
        seconds = milliseconds / 1000
        self.requests[door, operation, str(labels.status)] += 1
        times = self.times.get((door, operation))
        if times is None:
            times = self.times[door, operation] = [0] * (len(SECONDS) + 1) + [0.0]
        times[bisect_left(SECONDS, seconds)] += 1
        times[-1] += seconds


class Measured(Protocol):
    """The database, as far as its numbers go."""

    statements: int

    @property
    def connections(self) -> tuple[int, int]: ...

    async def measure(self) -> dict[str, float]: ...


class Metrics:
    def __init__(self, database: Measured, settings: Settings) -> None:
        self._counts = RequestCounts()
        self.count = self._counts.count
        self._database = database
        self._pool_size = settings.database_pool_size
        self._folder = settings.data_dir / "metrics"
        self._own = self._folder / f"{os.getppid()}-{os.getpid()}.json"

    async def keep_publishing(self) -> None:
        """Runs for as long as the service does."""
        with contextlib.suppress(OSError):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            for path in self._folder.glob("*.json"):
                if not _is_alive(path.name.partition("-")[0]):
                    path.unlink(missing_ok=True)
        while True:
            try:
                self._publish()
            except OSError as error:
                _log.warning("the other workers cannot be told what was counted: %s", type(error).__name__)
                return
            await asyncio.sleep(_PUBLISH_SECONDS)

    async def text(self) -> str:
        return render([self._snapshot(), *self._others()], await self._database.measure())

    def _snapshot(self) -> Snapshot:
        opened, idle = self._database.connections
        return {
            "requests": [[*labels, count] for labels, count in self._counts.requests.items()],
            "times": [[*labels, times] for labels, times in self._counts.times.items()],
            "statements": self._database.statements,
            "connections": {"busy": opened - idle, "idle": idle, "unopened": self._pool_size - opened},
        }

    def _publish(self) -> None:
        written = self._own.with_suffix(".new")
        written.write_bytes(orjson.dumps(self._snapshot()))
        written.replace(self._own)

    def _others(self) -> Iterator[Snapshot]:
        """What the other workers of this server have counted, also those that were replaced."""
        for path in self._folder.glob(f"{os.getppid()}-*.json"):
            if path != self._own:
                with contextlib.suppress(OSError, orjson.JSONDecodeError):
                    snapshot: Snapshot = orjson.loads(path.read_bytes())
                    if not _is_alive(path.stem.partition("-")[2]):
                        snapshot["connections"] = {}
                    yield snapshot


def metrics_routes(metrics: Metrics, settings: Settings) -> list[Route]:
    """None where no token was set: then there is no such path."""
    if settings.metrics_token is None:
        return []
    expected = f"Bearer {settings.metrics_token}".encode()

    async def answer(request: Request) -> Response:
        if not hmac.compare_digest(request.headers.get("authorization", "").encode(), expected):
            raise Problem("unauthorized", "The metrics need the token that was set for them.")
        headers = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
        return PlainTextResponse(await metrics.text(), headers=headers, media_type=_TYPE)

    return [Route("/metrics", answer)]


def render(snapshots: list[Snapshot], database: dict[str, float]) -> str:
    requests: Counter[tuple[str, ...]] = Counter()
    times: dict[tuple[str, str], list[float]] = {}
    connections: Counter[str] = Counter()
    for snapshot in snapshots:
        for *labels, count in snapshot["requests"]:
            requests[tuple(labels)] += count
        for door, operation, counted in snapshot["times"]:
            known = times.get((door, operation), [0] * len(counted))
            times[door, operation] = [a + b for a, b in zip(known, counted, strict=True)]
        connections.update(snapshot["connections"])
    lines = ["# HELP frontdesk_requests_total Requests answered.", "# TYPE frontdesk_requests_total counter"]
    for (door, operation, status), count in sorted(requests.items()):
        lines.append(f'frontdesk_requests_total{{door="{door}",operation="{operation}",code="{status}"}} {count}')
    lines += [
        "# HELP frontdesk_request_seconds Time from a request's arrival to its answer.",
        "# TYPE frontdesk_request_seconds histogram",
    ]
    for (door, operation), counted in sorted(times.items()):
        lines += _histogram(f'door="{door}",operation="{operation}"', counted)
    lines += [
        "# HELP frontdesk_database_statements_total Statements sent to the database.",
        "# TYPE frontdesk_database_statements_total counter",
        f"frontdesk_database_statements_total {sum(snapshot['statements'] for snapshot in snapshots)}",
        "# HELP frontdesk_database_connections Places in the workers' connection pools.",
        "# TYPE frontdesk_database_connections gauge",
    ]
    lines += [f'frontdesk_database_connections{{state="{state}"}} {n}' for state, n in sorted(connections.items())]
    for name, value in database.items():
        lines += [
            f"# HELP frontdesk_database_{name} {_ABOUT[name]}",
            f"# TYPE frontdesk_database_{name} gauge",
            f"frontdesk_database_{name} {value}",
        ]
    return "\n".join(lines) + "\n"


_ABOUT = {"up": "1 when the database answers.", "bytes": "Size of the database.", "sessions": "Sessions on it."}


def _histogram(labels: str, counted: list[float]) -> Iterator[str]:
    total = 0
    for limit, count in zip((*SECONDS, "+Inf"), counted, strict=False):
        total += int(count)
        yield f'frontdesk_request_seconds_bucket{{{labels},le="{limit}"}} {total}'
    yield f"frontdesk_request_seconds_sum{{{labels}}} {counted[-1]:.6f}"
    yield f"frontdesk_request_seconds_count{{{labels}}} {total}"


def _is_alive(process: str) -> bool:
    try:
        os.kill(int(process), 0)
    except (ValueError, ProcessLookupError):
        return False
    except PermissionError:
        return True
    return True
