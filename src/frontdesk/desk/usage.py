"""Requests of a practice's clients: against their rate limits and quotas, and over time."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Literal
from zoneinfo import ZoneInfo

from frontdesk.access.clients.records import ClientRecord, list_clients
from frontdesk.access.limits.rate_limiter import MINUTE_SECONDS, QUOTA_SECONDS
from frontdesk.desk.context import ActionContext
from frontdesk.store.database import Database
from frontdesk.texts import N_

RequestOutcome = Literal["succeeded", "challenged", "refused", "failed"]
Error = tuple[int, str]  # status and code
REQUEST_OUTCOMES: tuple[RequestOutcome, ...] = ("succeeded", "challenged", "refused", "failed")
REQUEST_OUTCOME_NAMES: Mapping[RequestOutcome, str] = {
    "succeeded": N_("Succeeded"),
    "challenged": N_("Challenged"),
    "refused": N_("Refused"),
    "failed": N_("Failed"),
}

_MINUTE, _QUOTA_PERIOD = timedelta(seconds=MINUTE_SECONDS), timedelta(seconds=QUOTA_SECONDS)

# By the clock of the database, like the rate limiter.
_USED = """
SELECT client_id,
       CASE WHEN now() < minute_started_at + $2::interval THEN minute_used ELSE 0 END AS minute_used,
       CASE WHEN now() < quota_started_at + $3::interval THEN quota_used ELSE 0 END AS quota_used,
       CASE WHEN now() < quota_started_at + $3::interval THEN quota_started_at + $3::interval END AS quota_ends
FROM client_usage WHERE practice_id = $1
"""
_COUNTED = """
SELECT began_at, status, code, operation, door, client_id, sum(requests)::bigint AS requests FROM request_count
WHERE practice_id = $1 AND minutes = $2 AND began_at >= $3 AND ($4::text IS NULL OR client_id = $4)
GROUP BY began_at, status, code, operation, door, client_id
"""


@dataclass(frozen=True, slots=True)
class Span:
    """A period until now, in equal steps. Counts are stored per 5 and per 60 minutes."""

    name: str
    label: str
    minutes: Literal[5, 60]
    step: timedelta
    steps: int


SPANS = {
    span.name: span
    for span in (
        Span("3h", N_("3 hours"), 5, timedelta(minutes=5), 36),
        Span("24h", N_("24 hours"), 5, timedelta(minutes=30), 48),
        Span("7d", N_("7 days"), 60, timedelta(hours=6), 28),
        Span("30d", N_("30 days"), 60, timedelta(days=1), 30),
    )
}


@dataclass(frozen=True, slots=True)
class ClientUse:
    """A client's use of its rate limit and quota. Periods that have ended count as unused."""

    client: ClientRecord
    minute_used: int
    quota_used: int
    quota_ends: datetime | None  # None: no call in these 30 days


@dataclass(frozen=True, slots=True)
class UsageBucket:
    """One step of a span. `errors` are counted by status and code."""

    began_at: datetime
    requests: Counter[RequestOutcome] = field(default_factory=Counter)
    errors: Counter[Error] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class UsageReport:
    """Requests of a span by step, operation, client and door."""

    span: Span
    moments: Sequence[UsageBucket]
    operations: Counter[str] = field(default_factory=Counter)
    troubled: Counter[str] = field(default_factory=Counter)  # operations that were refused or failed
    clients: Counter[str] = field(default_factory=Counter)
    doors: Counter[str] = field(default_factory=Counter)

    @property
    def requests(self) -> Counter[RequestOutcome]:
        return sum((moment.requests for moment in self.moments), Counter())

    @property
    def errors(self) -> Counter[Error]:
        return sum((moment.errors for moment in self.moments), Counter())


def outcome_of(status: int) -> RequestOutcome:
    if status == 428:
        return "challenged"
    if status < 400:
        return "succeeded"
    return "refused" if status < 500 else "failed"


@dataclass(frozen=True, slots=True)
class Usage:
    database: Database

    async def of_clients(self, context: ActionContext) -> list[ClientUse]:
        context.require("admin")
        clients = await list_clients(self.database, practice=context.staff.practice_slug)
        async with self.database.transaction(context.practice_id) as connection:
            rows = await connection.fetch(_USED, context.practice_id, _MINUTE, _QUOTA_PERIOD)
        used = {row["client_id"]: (row["minute_used"], row["quota_used"], row["quota_ends"]) for row in rows}
        return [ClientUse(client, *used.get(client.client_id, (0, 0, None))) for client in clients]

    async def over_time(
        self, context: ActionContext, span: Span, zone: ZoneInfo, client_id: str | None = None
    ) -> UsageReport:
        context.require("admin")
        steps = _steps(context.now, span, zone)
        async with self.database.transaction(context.practice_id) as connection:
            rows = await connection.fetch(_COUNTED, context.practice_id, span.minutes, steps[0], client_id)
        counted = UsageReport(span, [UsageBucket(began_at) for began_at in steps])
        for row in rows:
            requests, how = row["requests"], outcome_of(row["status"])
            moment = counted.moments[bisect_right(steps, row["began_at"]) - 1]
            moment.requests[how] += requests
            counted.operations[row["operation"]] += requests
            counted.clients[row["client_id"]] += requests
            counted.doors[row["door"]] += requests
            if how in ("refused", "failed"):
                moment.errors[row["status"], row["code"]] += requests
                counted.troubled[row["operation"]] += requests
        return counted


def _steps(now: datetime, span: Span, zone: ZoneInfo) -> list[datetime]:
    """The start of each step; the last one contains `now`. Steps of hours and days follow the practice's zone."""
    clocks = zone if span.step >= timedelta(hours=6) else UTC
    wall = now.astimezone(clocks).replace(tzinfo=UTC).timestamp()
    length = span.step.total_seconds()
    newest = datetime.fromtimestamp(wall // length * length, UTC)
    begun = [newest - span.step * back for back in range(span.steps - 1, -1, -1)]
    return [moment.replace(tzinfo=clocks).astimezone(UTC) for moment in begun]
