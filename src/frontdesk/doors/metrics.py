"""/metrics: numbers for operators in the text format of Prometheus, for callers with the metrics token.

No practice, client, patient or address is in a label, and the number of series is bounded by the code. Imported only
where a token is set: the library is slow to import.
"""

import hmac
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Protocol, TypeAlias

from prometheus_client import generate_latest
from prometheus_client.core import (
    CollectorRegistry,
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from frontdesk.background import Step
from frontdesk.domain.errors import Problem
from frontdesk.doors.worker_numbers import Numbers, Worker, WorkerNumbers
from frontdesk.logs import RequestLabels
from frontdesk.web.http_request import request_of
from frontdesk.web.responses import TRACE_HEADER

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_MILLISECONDS = tuple(1000 * seconds for seconds in SECONDS)
_BUCKETS = (*map(str, SECONDS), "+Inf")
_SUM = "sum"  # of the seconds, beside the buckets
_REQUEST_SECONDS = "frontdesk_request_seconds"
_PUBLISH_SECONDS = 1.0
_DATABASE_HELP = {
    "up": "1 when the database answers.",
    "bytes": "Size of the database.",
    "sessions": "Database sessions.",
}

Labelled = Mapping[tuple[str, ...], float]  # a value per combination of labels
Merge: TypeAlias = Callable[[Iterable[float]], float]  # of the values of all workers


class Measured(Protocol):
    """The database, as far as its numbers go."""

    async def measure(self) -> dict[str, float]: ...


@dataclass(frozen=True, slots=True)
class Queues:
    """What waits in the database: a help text per name, and the values by name and state, if there are any now."""

    about: Mapping[str, str]
    read: Callable[[], Awaitable[Mapping[tuple[str, str], float]]]


@dataclass(frozen=True, slots=True)
class _Series:
    """`read` gives the numbers of this worker."""

    family: type[CounterMetricFamily | GaugeMetricFamily]
    name: str
    about: str
    labels: tuple[str, ...]
    read: Callable[[], Labelled]
    merge: Merge = sum


class Metrics:
    """The numbers of this worker and, with a folder, of the others."""

    def __init__(self, database: Measured, queues: Queues, token: str, folder: Path | None) -> None:
        self.route = Route("/metrics", self._answer)
        self.step = Step("metrics", self.publish, every=_PUBLISH_SECONDS)
        self._expected = f"Bearer {token}".encode()
        self._database = database
        self._queues = queues
        self._workers = None if folder is None else WorkerNumbers(folder)
        # Requests per bucket since the last publication, then the sum of milliseconds. Requests with equal labels
        # share one object, which is found faster than a tuple of texts.
        self._answered: dict[RequestLabels, list[float]] = {}
        self._requests: Counter[tuple[str, ...]] = Counter()
        self._errors: Counter[tuple[str, ...]] = Counter()
        self._seconds: defaultdict[tuple[str, ...], float] = defaultdict(float)
        self._series: list[_Series] = []
        labels = ("door", "operation", "code")
        self.add_counter("frontdesk_requests", "Requests answered.", labels, lambda: self._requests)
        labels, about = ("door", "operation", "error"), "Requests answered with an error of the catalogue."
        self.add_counter("frontdesk_errors", about, labels, lambda: self._errors)

    def add_counter(self, name: str, about: str, labels: tuple[str, ...], read: Callable[[], Labelled]) -> None:
        """Publishes totals that only grow, summed over the workers. `read` must not block."""
        self._series.append(_Series(CounterMetricFamily, name, about, labels, read))

    def add_gauge(
        self, name: str, about: str, labels: tuple[str, ...], read: Callable[[], Labelled], merge: Merge = sum
    ) -> None:
        """The same for values of the moment, of the workers that live."""
        self._series.append(_Series(GaugeMetricFamily, name, about, labels, read, merge))

    def observe(self, labels: RequestLabels, milliseconds: float, _request_id: str | None) -> None:
        """Observes the request log."""
        counts = self._answered.get(labels)
        if counts is None:
            counts = self._answered[labels] = [0] * (len(SECONDS) + 1) + [0.0]
        counts[bisect_left(_MILLISECONDS, milliseconds)] += 1
        counts[-1] += milliseconds

    async def publish(self) -> None:
        self._count_answered()
        if self._workers is not None:
            self._workers.write(self._numbers())

    async def _answer(self, request: Request) -> Response:
        if not hmac.compare_digest(request.headers.get("authorization", "").encode(), self._expected):
            raise Problem("unauthorized", "/metrics requires the metrics token.")
        trace_id = request_of(request.scope).request_id
        headers = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", TRACE_HEADER: trace_id}
        return PlainTextResponse(await self._text(), headers=headers, media_type=CONTENT_TYPE_PLAIN_0_0_4)

    async def _text(self) -> bytes:
        measured = await self._database.measure()
        queues = await self._queues.read() if measured["up"] else {}
        self._count_answered()
        workers = [Worker(self._numbers()), *([] if self._workers is None else self._workers.others())]
        registry = CollectorRegistry()
        registry.register(_Measurement(measured, self._queues.about, queues))
        registry.register(_Totals(self._series, workers))
        return generate_latest(registry)

    def _numbers(self) -> Numbers:
        numbers = {series.name: list(series.read().items()) for series in self._series}
        return {**numbers, _REQUEST_SECONDS: list(self._seconds.items())}

    def _count_answered(self) -> None:
        answered, self._answered = self._answered, {}
        for labels, (*counts, milliseconds) in answered.items():
            door, operation = labels.door, labels.operation or ""
            requests = int(sum(counts))
            self._requests[door, operation, str(labels.status)] += requests
            if labels.code is not None:
                self._errors[door, operation, labels.code] += requests
            for bucket, count in zip(_BUCKETS, counts, strict=True):
                self._seconds[door, operation, bucket] += count
            self._seconds[door, operation, _SUM] += milliseconds / 1000


class _Totals:
    """What the workers have counted, merged."""

    def __init__(self, series: Sequence[_Series], workers: Sequence[Worker]) -> None:
        self._series = series
        self._workers = workers

    def collect(self) -> Iterator[Metric]:
        live = [worker for worker in self._workers if not worker.has_ended]
        for series in self._series:
            workers = live if series.family is GaugeMetricFamily else self._workers
            family = series.family(series.name, series.about, labels=series.labels)
            for labels, value in _merged(series.name, workers, series.merge).items():
                family.add_metric(labels, value)
            yield family
        seconds = _merged(_REQUEST_SECONDS, self._workers, sum)
        about = "Time from a request's arrival to its answer."
        histogram = HistogramMetricFamily(_REQUEST_SECONDS, about, labels=("door", "operation"))
        for door, operation in dict.fromkeys((door, operation) for door, operation, _ in seconds):
            totals = accumulate(seconds[door, operation, bucket] for bucket in _BUCKETS)
            buckets = list(zip(_BUCKETS, totals, strict=True))
            histogram.add_metric((door, operation), buckets, seconds[door, operation, _SUM])
        yield histogram


def _merged(name: str, workers: Sequence[Worker], merge: Merge) -> Labelled:
    values: defaultdict[tuple[str, ...], list[float]] = defaultdict(list)
    for worker in workers:
        for labels, value in worker.numbers.get(name, ()):
            values[tuple(labels)].append(value)
    return {labels: merge(found) for labels, found in values.items()}


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
