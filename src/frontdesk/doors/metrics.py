"""/metrics: numbers for operators in the text format of Prometheus, for callers with the metrics token.

No practice, client, patient or address is in a label, and the number of series is bounded by the code. Imported only
where a token is set: the library is slow to import.
"""

import hmac
import os
from bisect import bisect_left
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

import prometheus_client as prometheus
from prometheus_client.core import CollectorRegistry, GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.multiprocess import MultiProcessCollector
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from frontdesk.background import Step
from frontdesk.domain.errors import Problem
from frontdesk.doors.metrics_file import reserve_room
from frontdesk.logs import RequestLabels
from frontdesk.web.http_request import request_of
from frontdesk.web.responses import TRACE_HEADER

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_MILLISECONDS = tuple(1000 * seconds for seconds in SECONDS)
_PUBLISH_SECONDS = 1.0
_DATABASE_HELP = {
    "up": "1 when the database answers.",
    "bytes": "Size of the database.",
    "sessions": "Database sessions.",
}

WorkersAs = Literal["livesum", "livemin", "livemax"]
Labelled = Mapping[tuple[str, ...], float]  # a value per combination of labels


class Measured(Protocol):
    """The database, as far as its numbers go."""

    async def measure(self) -> dict[str, float]: ...


@dataclass(frozen=True, slots=True)
class Queues:
    """What waits in the database: a help text per name, and the values by name and state, if there are any now."""

    about: Mapping[str, str]
    read: Callable[[], Awaitable[Mapping[tuple[str, str], float]]]


class Metrics:
    """The numbers of this worker, written once a second to where the others read them.

    Counting happens in plain Python numbers: the library takes several times as long for a single request.
    """

    def __init__(self, database: Measured, queues: Queues, token: str) -> None:
        reserve_room()
        self.route = Route("/metrics", self._answer)
        self.step = Step("metrics", self.publish, every=_PUBLISH_SECONDS)
        self._expected = f"Bearer {token}".encode()
        self._database = database
        self._queues = queues
        self._registry = CollectorRegistry()
        self._updates: list[Callable[[], None]] = []
        # Since the last publication: requests per bucket, then the sum of milliseconds. Requests with equal labels
        # share one object, which is found faster than a tuple of texts.
        self._answered: dict[RequestLabels, list[float]] = {}
        self._requests = prometheus.Counter(
            "frontdesk_requests", "Requests answered.", ("door", "operation", "code"), registry=self._registry
        )
        self._errors = prometheus.Counter(
            "frontdesk_errors",
            "Requests answered with an error of the catalogue.",
            ("door", "operation", "error"),
            registry=self._registry,
        )
        self._seconds = prometheus.Histogram(
            "frontdesk_request_seconds",
            "Time from a request's arrival to its answer.",
            ("door", "operation"),
            buckets=SECONDS,
            registry=self._registry,
        )
        self._updates.append(self._update_requests)

    def add_counter(self, name: str, about: str, labels: tuple[str, ...], read: Callable[[], Labelled]) -> None:
        """Publishes totals that only grow, summed over the workers. `read` runs every second and must not block."""
        counter = prometheus.Counter(name, about, labels, registry=self._registry)
        published: dict[tuple[str, ...], float] = {}

        def update() -> None:
            for values, total in read().items():
                (counter.labels(*values) if values else counter).inc(total - published.get(values, 0))
                published[values] = total

        self._updates.append(update)

    def add_gauge(
        self,
        name: str,
        about: str,
        labels: tuple[str, ...],
        read: Callable[[], Labelled],
        workers: WorkersAs = "livesum",
    ) -> None:
        """The same for values of the moment: the sum over the live workers, or the least or most of them."""
        gauge = prometheus.Gauge(name, about, labels, registry=self._registry, multiprocess_mode=workers)

        def update() -> None:
            for values, value in read().items():
                (gauge.labels(*values) if values else gauge).set(value)

        self._updates.append(update)

    def observe(self, labels: RequestLabels, milliseconds: float, _request_id: str | None) -> None:
        """Observes the request log."""
        counts = self._answered.get(labels)
        if counts is None:
            counts = self._answered[labels] = [0] * (len(SECONDS) + 1) + [0.0]
        counts[bisect_left(_MILLISECONDS, milliseconds)] += 1
        counts[-1] += milliseconds

    async def publish(self) -> None:
        for update in self._updates:
            update()

    async def _answer(self, request: Request) -> Response:
        if not hmac.compare_digest(request.headers.get("authorization", "").encode(), self._expected):
            raise Problem("unauthorized", "/metrics requires the metrics token.")
        trace_id = request_of(request.scope).request_id
        headers = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", TRACE_HEADER: trace_id}
        return PlainTextResponse(await self._text(), headers=headers, media_type=CONTENT_TYPE_PLAIN_0_0_4)

    async def _text(self) -> bytes:
        registry = CollectorRegistry()
        measured = await self._database.measure()
        queues = await self._queues.read() if measured["up"] else {}
        registry.register(_Measurement(measured, self._queues.about, queues))
        if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        else:
            registry.register(self._registry)
        await self.publish()
        return prometheus.generate_latest(registry)

    def _update_requests(self) -> None:
        answered, self._answered = self._answered, {}
        for labels, (*counts, milliseconds) in answered.items():
            door, operation = labels.door, labels.operation or ""
            self._requests.labels(door, operation, str(labels.status)).inc(sum(counts))
            if labels.code is not None:
                self._errors.labels(door, operation, labels.code).inc(sum(counts))
            histogram = self._seconds.labels(door, operation)
            # The library can only observe requests one by one; these attributes take all of the last second at once.
            for bucket, count in zip(histogram._buckets, counts, strict=True):
                bucket.inc(count)
            histogram._sum.inc(milliseconds / 1000)


class _Measurement:
    """What was measured of the database, which is the same for every worker."""

    def __init__(
        self, values: Mapping[str, float], about: Mapping[str, str], queues: Mapping[tuple[str, str], float]
    ) -> None:
        self._values = values
        self._about = about
        self._queues = queues

    def collect(self) -> Iterator[GaugeMetricFamily]:
        for name, value in self._values.items():
            yield GaugeMetricFamily(f"frontdesk_database_{name}", _DATABASE_HELP[name], value=value)
        families: dict[str, GaugeMetricFamily] = {}
        for (name, state), value in self._queues.items():
            if name not in families:
                labels = ["state"] if state else []
                families[name] = GaugeMetricFamily(f"frontdesk_{name}", self._about[name], labels=labels)
            families[name].add_metric([state] if state else [], value)
        yield from families.values()
