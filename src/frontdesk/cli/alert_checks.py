"""Checks of `doctor` for what the alert rules watch: queues in the database, sessions, and the running service."""

import re
from datetime import timedelta
from typing import TYPE_CHECKING

from frontdesk.cli.exposure import CheckOutcome
from frontdesk.cli.output import counted
from frontdesk.cli.running_service import ask_service

if TYPE_CHECKING:
    from frontdesk.settings import Settings
    from frontdesk.store.database import Database
    from frontdesk.store.queues import Measured

_MAX_UNSEALED_AGE = timedelta(minutes=3)  # unsealed records of other nodes are found once a minute
_MAX_OUTBOX_AGE = timedelta(minutes=5)
_MAX_DELIVERY_DELAY = timedelta(minutes=15)
_MAX_UNSETTLED_AGE = timedelta(minutes=10)
_MAX_FAILURES = 10
_MAX_USED_SHARE = 0.9  # of sessions and of the pools
_SERIES = re.compile(r'^(frontdesk_[a-z_]+)(?:\{(?:step|state)="([^"]*)"\})? ([0-9.e+-]+)$', re.MULTILINE)


def audit(measured: "Measured") -> CheckOutcome:
    detail = f"{counted(int(measured['audit_unsealed_records', '']), 'record')} not sealed yet"
    if measured["audit_unsealed_seconds", ""] > _MAX_UNSEALED_AGE.total_seconds():
        return "warning", f"{detail}: is a server running? frontdesk audit verify seals them"
    return "ok", detail


def webhooks(measured: "Measured") -> CheckOutcome:
    endpoints = {state: int(value) for (name, state), value in measured.items() if name == "webhook_endpoints"}
    if not any(endpoints.values()):
        return "skipped", "there are no endpoints"
    if measured["outbox_seconds", ""] > _MAX_OUTBOX_AGE.total_seconds():
        waiting, late = (
            counted(int(measured["outbox_events", ""]), "event"),
            _minutes(measured["outbox_seconds", ""]),
        )
        return "warning", f"{waiting} not handed over for {late}: is a server running?"
    if measured["webhook_overdue_seconds", ""] > _MAX_DELIVERY_DELAY.total_seconds():
        late = _minutes(measured["webhook_overdue_seconds", ""])
        return "warning", f"the next delivery has been due for {late}: is a server running? Does the endpoint answer?"
    if endpoints["paused"]:
        paused = counted(endpoints["paused"], "endpoint")
        return "warning", f"{paused} paused because of failures: frontdesk webhook list names them"
    return "ok", ", ".join(f"{number} {state}" for state, number in endpoints.items() if number)


def upstream_writes(measured: "Measured") -> CheckOutcome:
    waiting = int(measured["upstream_writes", "leased"] + measured["upstream_writes", "waiting"])
    age = measured["upstream_write_seconds", ""]
    if age > _MAX_UNSETTLED_AGE.total_seconds():
        return (
            "warning",
            f"{counted(waiting, 'write')} not settled for {_minutes(age)}: does the FHIR server answer?",
        )
    if misconfigured := int(measured["upstream_misconfigured_practices", ""]):
        return "warning", f"{counted(misconfigured, 'practice')} to be corrected: frontdesk practice check says what"
    return "ok", f"{counted(waiting, 'write')} to FHIR servers not settled"


async def sessions(database: "Database") -> CheckOutcome:
    from frontdesk.store.sizes import count_sessions

    used, limit = await count_sessions(database)
    detail = f"{used} of {limit} used"
    return ("warning", f"{detail}: raise max_connections") if used > _MAX_USED_SHARE * limit else ("ok", detail)


def metrics(settings: "Settings") -> CheckOutcome:
    """What the running service reports about itself."""
    if settings.metrics_token is None:
        return "skipped", "FRONTDESK_METRICS_TOKEN is not set: the service is not monitored"
    answer = ask_service(settings, "/metrics", settings.metrics_token)
    if answer is None:
        return "skipped", "the service does not run here"
    status, text = answer
    if status != 200:
        return "failed", f"/metrics answers {status}: does the service have the same FRONTDESK_METRICS_TOKEN?"
    series = {(name, label): float(value) for name, label, value in _SERIES.findall(text)}
    if series.get(("frontdesk_audit_altered_trails", "")):
        return "failed", "an audit trail was altered: frontdesk audit verify says which"
    failures = {step: value for (name, step), value in series.items() if name == "frontdesk_background_failures"}
    if failing := sorted(step for step, value in failures.items() if value > _MAX_FAILURES):
        return "failed", f"background work fails: {', '.join(failing)}"
    pools = {state: value for (name, state), value in series.items() if name == "frontdesk_database_connections"}
    if pools.get("busy", 0) > _MAX_USED_SHARE * sum(pools.values()):
        return "warning", "nearly all database connections are in use: raise FRONTDESK_DATABASE_POOL_SIZE"
    return "ok", "the service reports nothing unusual"


def traces(settings: "Settings") -> CheckOutcome:
    from frontdesk.serving.address import ServingError
    from frontdesk.serving.traces import check_installed

    if settings.otlp_endpoint is None:
        return "skipped", "FRONTDESK_OTLP_ENDPOINT is not set: nothing is traced"
    try:
        check_installed(settings)
    except ServingError as error:
        return "failed", str(error)
    return "ok", f"sent to {settings.shown('otlp_endpoint')}"


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:.0f} minutes"
