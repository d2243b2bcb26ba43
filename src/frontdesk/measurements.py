"""Publishes the numbers that the parts of the service keep as metrics.

Imported only where a metrics token is set.
"""

import resource
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from frontdesk import __version__
from frontdesk.access.limits.connections import ConnectionLimit
from frontdesk.access.limits.exceeded import CLIENT_LIMITS
from frontdesk.access.limits.invalid_tokens import InvalidTokens
from frontdesk.access.limits.rate_limiter import RateLimiter
from frontdesk.audit.heads import AuditHeads
from frontdesk.background import Background
from frontdesk.doors.metrics import Labelled, Merge, Metrics
from frontdesk.engine.execute import Engine
from frontdesk.outbound.webhooks.deliverer import RESULTS, Deliverer
from frontdesk.settings import Settings
from frontdesk.store.database import Database
from frontdesk.systems.fhir import FhirSystems

_PAGE_BYTES = resource.getpagesize()
_STATUSES = ("2xx", "4xx", "5xx", "none")
_MEMORY = Path("/proc/self/statm")


class Measured(Protocol):
    """The parts of a service that keep numbers."""

    @property
    def settings(self) -> Settings: ...
    @property
    def database(self) -> Database: ...
    @property
    def engine(self) -> Engine: ...
    @property
    def limiter(self) -> RateLimiter: ...
    @property
    def invalid_tokens(self) -> InvalidTokens: ...
    @property
    def connection_limit(self) -> ConnectionLimit: ...
    @property
    def webhooks(self) -> Deliverer: ...
    @property
    def fhir(self) -> FhirSystems: ...
    @property
    def audit_heads(self) -> AuditHeads: ...


def measure_service(metrics: Metrics, service: Measured, background: Background) -> None:
    _measure_process(metrics)
    _measure_database(metrics, service.database, service.settings.database_pool_size)
    _measure_engine(metrics, service.engine)
    _measure_refusals(metrics, service.invalid_tokens, service.connection_limit)
    _measure_rate_limiter(metrics, service.limiter)
    _measure_outside(metrics, service.webhooks, service.fhir)
    _measure_background(metrics, background)
    service.engine.services.measure(metrics)
    altered = service.audit_heads.altered
    about = "Practices whose audit trail no longer matches what was signed."
    metrics.add_gauge("frontdesk_audit_altered_trails", about, (), lambda: {(): len(altered)}, max)


def _measure_process(metrics: Metrics) -> None:
    metrics.add_gauge("frontdesk_workers", "Worker processes.", ("version",), lambda: {(__version__,): 1})
    metrics.add_counter("frontdesk_worker_cpu_seconds", "CPU time.", (), lambda: {(): time.process_time()})
    if _MEMORY.exists():
        about = "Resident memory of the workers."
        metrics.add_gauge("frontdesk_worker_memory_bytes", about, (), lambda: {(): _resident_bytes()})


def _resident_bytes() -> int:
    return int(_MEMORY.read_bytes().split()[1]) * _PAGE_BYTES


def _measure_database(metrics: Metrics, database: Database, pool_size: int) -> None:
    def connections() -> Labelled:
        opened, idle = database.connections
        return {("busy",): opened - idle, ("idle",): idle, ("unopened",): pool_size - opened}

    name, about = "frontdesk_database_connections", "Places in the workers' connection pools."
    metrics.add_gauge(name, about, ("state",), connections)
    name, about = "frontdesk_database_waiting", "Callers that wait for a connection now."
    metrics.add_gauge(name, about, (), lambda: {(): database.waiting})
    name, about = "frontdesk_database_waits", "Callers that found no idle connection."
    metrics.add_counter(name, about, (), lambda: {(): database.waits})
    name, about = "frontdesk_database_refused", "Callers that got no connection in time, or none at all."
    metrics.add_counter(name, about, (), lambda: {(): database.refused})
    name, about = "frontdesk_database_statements", "Statements sent to the database."
    metrics.add_counter(name, about, (), lambda: {(): database.statements})


def _measure_engine(metrics: Metrics, engine: Engine) -> None:
    answers, limiters = engine.answers, {"search": engine.search_limiter, "other": engine.limiter}

    def lookups() -> Labelled:
        results = (("hit", answers.hits), ("miss", answers.misses))
        names = {*answers.hits, *answers.misses}
        return {(name, result): counts[name] for result, counts in results for name in names}

    def calls() -> Labelled:
        states = ("running", "waiting")
        return {(kind, state): getattr(each, state) for kind, each in limiters.items() for state in states}

    name, about = "frontdesk_answer_cache_lookups", "Lookups in the answer cache."
    metrics.add_counter(name, about, ("operation", "result"), lookups)
    metrics.add_gauge("frontdesk_turns", "Calls that run or wait for their turn.", ("kind", "state"), calls)
    name, about = "frontdesk_turns_expired", "Calls that got no turn in time."
    metrics.add_counter(name, about, ("kind",), lambda: {(kind,): each.expired for kind, each in limiters.items()})
    name, about = "frontdesk_client_limit_refusals", "Calls refused because of a limit on patients, matches or writes."
    metrics.add_counter(name, about, ("limit",), lambda: _by_label(engine.refusals, CLIENT_LIMITS))


def _measure_refusals(metrics: Metrics, invalid_tokens: InvalidTokens, connection_limit: ConnectionLimit) -> None:
    about = "Calls with an access token that is not valid."
    metrics.add_counter("frontdesk_invalid_tokens", about, (), lambda: {(): invalid_tokens.total})
    about = "Connections refused because their address had too many."
    metrics.add_counter("frontdesk_connections_refused", about, (), lambda: {(): connection_limit.refused})


def _measure_rate_limiter(metrics: Metrics, limiter: RateLimiter) -> None:
    def renewals() -> Labelled:
        return {("renewed",): limiter.renewals, ("failed",): limiter.failures}

    name, about = "frontdesk_rate_limiter_leases", "Exchanges of the rate limiter with the database."
    metrics.add_counter(name, about, ("result",), renewals)
    name, about = "frontdesk_rate_limiter_leased_calls", "Calls that clients may make before leases are renewed."
    metrics.add_gauge(name, about, (), lambda: {(): limiter.leased})


def _measure_outside(metrics: Metrics, webhooks: Deliverer, fhir: FhirSystems) -> None:
    def servers() -> Labelled:
        states = fhir.connection_states
        return {("working",): states["working"], ("failing",): states["failing"], ("resting",): states["resting"]}

    name, about = "frontdesk_webhook_attempts", "Webhook deliveries attempted; a dead one is not tried again."
    metrics.add_counter(name, about, ("result",), lambda: _by_label(webhooks.attempts, RESULTS))
    name, about = "frontdesk_upstream_requests", "Requests to FHIR servers by status, none without an answer."
    metrics.add_counter(name, about, ("status",), lambda: _by_label(fhir.requests, _STATUSES))
    name, about = "frontdesk_upstream_servers", "FHIR servers by state, as the worker sees it that knows most in it."
    metrics.add_gauge(name, about, ("state",), servers, max)
    name, about = "frontdesk_upstream_settled", "Writes to FHIR servers that the reconciler settled, by outcome."
    metrics.add_counter(name, about, ("outcome",), lambda: _by_label(fhir.reconciler.settled, ("executed",)))


def _measure_background(metrics: Metrics, background: Background) -> None:
    def add_gauge(name: str, about: str, attribute: str, merge: Merge = sum) -> None:
        def read() -> Labelled:
            return {(step,): getattr(state, attribute) for step, state in background.states.items()}

        metrics.add_gauge(f"frontdesk_background_{name}", about, ("step",), read, merge)

    def runs() -> Labelled:
        results = {"success": "successes", "failure": "all_failures"}
        states = background.states.items()
        return {(step, result): getattr(state, name) for step, state in states for result, name in results.items()}

    add_gauge("failures", "Failures of a background step since its last success.", "failures")
    add_gauge("running", "Workers that run a background step at this moment.", "running")
    last_success = "Unix time of a background step's last success, the oldest over all workers; 0 if none."
    add_gauge("success_timestamp_seconds", last_success, "succeeded_at", min)
    metrics.add_counter("frontdesk_background_runs", "Runs of a background step.", ("step", "result"), runs)

    def seconds() -> Labelled:
        return {(step,): state.seconds for step, state in background.states.items()}

    metrics.add_counter("frontdesk_background_seconds", "Time spent in runs of a background step.", ("step",), seconds)


def _by_label(counts: Mapping[str, int], known: tuple[str, ...]) -> Labelled:
    """Known labels are published from the start: Prometheus sees no increase in a series that it meets at 1."""
    return {(label,): counts.get(label, 0) for label in {*known, *counts}}
