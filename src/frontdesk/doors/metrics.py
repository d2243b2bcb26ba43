"""/metrics: numbers for operators in the text format of Prometheus, for callers with the metrics token.

No practice, client, patient or address is in a label, and the number of series is bounded by the code. Imported only
where a token is set: the library is slow to import.
"""

import hmac
import os
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Literal, Protocol

import prometheus_client as prometheus
from prometheus_client.core import CollectorRegistry, GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.multiprocess import MultiProcessCollector
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from frontdesk.access.limits.connections import ConnectionLimit
from frontdesk.access.limits.invalid_tokens import InvalidTokens
from frontdesk.background import Background, Step
from frontdesk.domain.errors import Problem
from frontdesk.engine.answer_cache import AnswerCache
from frontdesk.logs import RequestLabels

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_PUBLISH_SECONDS = 1.0
_DATABASE_HELP = {
    "up": "1 when the database answers.",
    "bytes": "Size of the database.",
    "sessions": "Database sessions.",
}

_Workers = Literal["livesum", "livemin"]
Read = Callable[[], Mapping[tuple[str, ...], float]]  # a value per combination of labels


class Measured(Protocol):
    """The database, as far as its numbers go."""

    statements: int

    @property
    def connections(self) -> tuple[int, int]: ...

    async def measure(self) -> dict[str, float]: ...


class Metrics:
    """The numbers of this worker, written once a second to where the others read them.

    Counting happens in plain Python numbers: the library takes several times as long for a single request.
    """

    def __init__(self, database: Measured, pool_size: int, token: str) -> None:
        self.route = Route("/metrics", self._answer)
        self.step = Step("metrics", self.publish, every=_PUBLISH_SECONDS)
        self._expected = f"Bearer {token}".encode()
        self._database = database
        self._registry = CollectorRegistry()
        self._updates: list[Callable[[], None]] = []
        self._requests: Counter[tuple[str, ...]] = Counter()
        self._times: dict[tuple[str, str], list[float]] = {}  # requests per bucket, then the sum of seconds
        self._seconds = prometheus.Histogram(
            "frontdesk_request_seconds",
            "Time from a request's arrival to its answer.",
            ("door", "operation"),
            buckets=SECONDS,
            registry=self._registry,
        )
        self._updates.append(self._update_times)

        def connections() -> dict[tuple[str, ...], float]:
            opened, idle = database.connections
            return {("busy",): opened - idle, ("idle",): idle, ("unopened",): pool_size - opened}

        self.add_counter(
            "frontdesk_requests", "Requests answered.", ("door", "operation", "code"), lambda: self._requests
        )
        self.add_counter(
            "frontdesk_database_statements", "Statements sent to the database.", (), lambda: {(): database.statements}
        )
        self.add_gauge(
            "frontdesk_database_connections", "Places in the workers' connection pools.", ("state",), connections
        )

    def add_counter(self, name: str, about: str, labels: tuple[str, ...], read: Read) -> None:
        """Publishes totals that only grow, summed over the workers. `read` runs every second and must not block."""
        counter = prometheus.Counter(name, about, labels, registry=self._registry)
        published: dict[tuple[str, ...], float] = {}

        def update() -> None:
            for values, total in read().items():
                (counter.labels(*values) if values else counter).inc(total - published.get(values, 0))
                published[values] = total

        self._updates.append(update)

    def add_gauge(
        self, name: str, about: str, labels: tuple[str, ...], read: Read, workers: _Workers = "livesum"
    ) -> None:
        """The same for values of the moment: the sum over the live workers, or the least of them."""
        gauge = prometheus.Gauge(name, about, labels, registry=self._registry, multiprocess_mode=workers)

        def update() -> None:
            for values, value in read().items():
                (gauge.labels(*values) if values else gauge).set(value)

        self._updates.append(update)

    def measure_answers(self, answers: AnswerCache) -> None:
        def read() -> dict[tuple[str, ...], float]:
            results = (("hit", answers.hits), ("miss", answers.misses))
            return {(name, result): count for result, counts in results for name, count in counts.items()}

        name = "frontdesk_answer_cache_lookups"
        self.add_counter(name, "Lookups in the answer cache.", ("operation", "result"), read)

    def measure_refusals(self, invalid_tokens: InvalidTokens, connection_limit: ConnectionLimit) -> None:
        about = "Calls with an access token that is not valid."
        self.add_counter("frontdesk_invalid_tokens", about, (), lambda: {(): invalid_tokens.total})
        about = "Connections refused because their address had too many."
        self.add_counter("frontdesk_connections_refused", about, (), lambda: {(): connection_limit.refused})

    def measure_background(self, background: Background) -> None:
        def add_gauge(name: str, about: str, attribute: str, workers: _Workers = "livesum") -> None:
            def read() -> dict[tuple[str, ...], float]:
                return {(step,): getattr(state, attribute) for step, state in background.states.items()}

            self.add_gauge(f"frontdesk_background_{name}", about, ("step",), read, workers)

        add_gauge("failures", "Failures of a background step since its last success.", "failures")
        add_gauge("running", "Workers that run a background step at this moment.", "running")
        last_success = "Unix time of a background step's last success, the oldest over all workers; 0 if none."
        add_gauge("success_timestamp_seconds", last_success, "succeeded_at", "livemin")

    def observe(self, labels: RequestLabels, milliseconds: float, _request_id: str | None) -> None:
        """Observes the request log."""
        door, operation = labels.door, labels.operation or ""
        seconds = milliseconds / 1000
        self._requests[door, operation, str(labels.status)] += 1
        times = self._times.get((door, operation))
        if times is None:
            times = self._times[door, operation] = [0] * (len(SECONDS) + 1) + [0.0]
        times[bisect_left(SECONDS, seconds)] += 1
        times[-1] += seconds

    async def publish(self) -> None:
        for update in self._updates:
            update()

    async def _answer(self, request: Request) -> Response:
        if not hmac.compare_digest(request.headers.get("authorization", "").encode(), self._expected):
            raise Problem("unauthorized", "/metrics requires the metrics token.")
        headers = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
        return PlainTextResponse(await self._text(), headers=headers, media_type=CONTENT_TYPE_PLAIN_0_0_4)

    async def _text(self) -> bytes:
        registry = CollectorRegistry()
        registry.register(_Measurement(await self._database.measure()))
        if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        else:
            registry.register(self._registry)
        await self.publish()
        return prometheus.generate_latest(registry)

    def _update_times(self) -> None:
        for labels, (*counts, seconds) in self._times.items():
            histogram = self._seconds.labels(*labels)
            # The library can only observe requests one by one; these attributes take all of the last second at once.
            for bucket, count in zip(histogram._buckets, counts, strict=True):
                bucket.inc(count)
            histogram._sum.inc(seconds)
        self._times.clear()


class _Measurement:
    """What was measured of the database, which is the same for every worker."""

    def __init__(self, values: Mapping[str, float]) -> None:
        self._values = values

    def collect(self) -> Iterator[GaugeMetricFamily]:
        for name, value in self._values.items():
            yield GaugeMetricFamily(f"frontdesk_database_{name}", _DATABASE_HELP[name], value=value)
