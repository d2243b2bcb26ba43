"""Reports: how a practice's appointments went in a period, who booked them, and which calls of agents failed.

They count appointments by the day they start on, and contain nothing about a patient.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from asyncpg import Record

from frontdesk.desk.actors import actors_of
from frontdesk.desk.context import ActionContext
from frontdesk.desk.names import Actor
from frontdesk.domain.availability import OpenTimes
from frontdesk.domain.directory import Directory, Provider, VisitType
from frontdesk.domain.errors import FieldError, invalid
from frontdesk.domain.local_time import zone
from frontdesk.engine.execute import Systems
from frontdesk.store.database import Database
from frontdesk.systems.port import Capability
from frontdesk.texts import N_, Text

MAX_PERIOD = timedelta(days=92)
OUTCOMES = ("completed", "noShow", "cancelled", "open")
BOOKERS = ("agent", "integration", "staff", "other")
LEADS = (N_("Same day"), N_("1–2 days"), N_("3–7 days"), N_("8–28 days"), N_("Over 28 days"))
_LEAD_ENDS = (0, 2, 7, 28)  # the last day of each but the last

# Rows of a day have no lead_days, and the others no day. Bounds on the start narrow the search; the local date decides.
_COUNTED = """
SELECT a.day, a.provider_id, a.visit_type_id, a.booked_by, a.status, a.lead_days, count(*) AS appointments,
       sum(a.minutes)::bigint AS minutes
FROM (
    SELECT t.provider_id, t.visit_type_id, t.booked_by, t.status, (t.starts_at AT TIME ZONE l.time_zone)::date AS day,
           greatest((t.starts_at AT TIME ZONE l.time_zone)::date - (t.created_at AT TIME ZONE l.time_zone)::date, 0)
               AS lead_days,
           extract(epoch FROM t.ends_at - t.starts_at) / 60 AS minutes
    FROM appointment t JOIN location l ON l.practice_id = t.practice_id AND l.location_id = t.location_id
    WHERE t.practice_id = $1 AND t.starts_at >= $2 AND t.starts_at < $3
) AS a
WHERE a.day BETWEEN $4 AND $5 AND ($6::integer IS NULL OR a.provider_id = $6)
  AND ($7::integer IS NULL OR a.visit_type_id = $7)
GROUP BY GROUPING SETS (
    (a.day, a.provider_id, a.visit_type_id, a.booked_by, a.status), (a.provider_id, a.visit_type_id, a.lead_days)
)
"""
_FAILED = """
SELECT r.began_at, c.name, r.operation, r.status, r.code, sum(r.requests)::bigint AS requests
FROM request_count r JOIN client c ON c.practice_id = r.practice_id AND c.client_id = r.client_id
WHERE r.practice_id = $1 AND r.minutes = 60 AND r.began_at >= $2 AND r.began_at < $3 AND c.grant_kind = 'agent'
  AND r.status >= 400 AND r.status <> 428
GROUP BY 1, 2, 3, 4, 5
"""


@dataclass(frozen=True, slots=True)
class Period:
    """Days, both included, and what is counted in them. None: every one."""

    first: date
    last: date
    provider_id: int | None = None
    visit_type_id: int | None = None

    @property
    def days(self) -> list[date]:
        return [self.first + timedelta(days=number) for number in range((self.last - self.first).days + 1)]


@dataclass(slots=True)
class Tally:
    """Appointments of a provider, a visit type or a booker."""

    outcomes: Counter[str] = field(default_factory=Counter)  # by OUTCOMES
    bookers: Counter[str] = field(default_factory=Counter)  # by BOOKERS
    lead_days: Counter[int] = field(default_factory=Counter)  # between booking and visit
    booked_minutes: int = 0  # of what was not cancelled
    open_minutes: int = 0

    @property
    def appointments(self) -> int:
        return self.outcomes.total()

    @property
    def median_lead(self) -> int | None:
        """The median time between booking and visit, in days; None without bookings."""
        half, seen = self.lead_days.total() / 2, 0
        for days in sorted(self.lead_days):
            seen += self.lead_days[days]
            if seen >= half:
                return days
        return None


@dataclass(frozen=True, slots=True)
class FailedCalls:
    client: str
    operation: str
    status: int
    code: str
    requests: int


@dataclass(frozen=True, slots=True)
class Report:
    period: Period
    counts_appointments: bool  # False: they are in the practice's own system
    by_day: Mapping[date, Tally]
    providers: Sequence[tuple[str, Tally]]  # with their names
    visit_types: Sequence[tuple[str, Tally]]
    bookers: Sequence[tuple[Actor, Tally]]  # most appointments first
    leads: Counter[str]  # by LEADS
    failed: Sequence[FailedCalls]  # most requests first
    failed_by_day: Mapping[date, Counter[str]]  # by code


@dataclass(frozen=True, slots=True)
class Reports:
    database: Database
    systems: Systems

    async def read(self, context: ActionContext, period: Period) -> Report:
        context.require("admin")
        if not timedelta(0) <= period.last - period.first < MAX_PERIOD:
            text = Text("%(field)s must be at most %(days)s days after from", days=MAX_PERIOD.days)
            raise invalid([FieldError("to", "maxWindow", text)])
        system = await self.systems(context.staff.caller())
        directory = await system.directory()
        counts = Capability.OPENING_HOURS in system.capabilities
        begin = datetime.combine(period.first, time(), UTC) - timedelta(days=1)
        end = datetime.combine(period.last, time(), UTC) + timedelta(days=2)
        wanted = (begin, end, period.first, period.last, period.provider_id, period.visit_type_id)
        async with self.database.transaction(context.practice_id) as connection:
            counted = await connection.fetch(_COUNTED, context.practice_id, *wanted) if counts else []
            failed = await connection.fetch(_FAILED, context.practice_id, begin, end)
        bookers = {row["booked_by"] for row in counted if row["day"] is not None}
        actors = await actors_of(self.database, context.practice_id, bookers)
        tallies = _Tallies({day: Tally() for day in period.days}, _with_open_minutes(directory, period))
        for row in counted:
            if row["day"] is None:
                tallies.add_lead(row)
            else:
                tallies.add_day(row, actors[row["booked_by"]])
        ranked = sorted(tallies.bookers.items(), key=lambda each: (-each[1].appointments, actors[each[0]].name))
        calls, by_day = _failed_calls(failed, period, zone(directory.practice.time_zone))
        return Report(
            period=period,
            counts_appointments=counts,
            by_day=tallies.by_day,
            providers=_named(tallies.providers, directory.providers),
            visit_types=_named(tallies.visit_types, directory.visit_types),
            bookers=[(actors[booker], tally) for booker, tally in ranked],
            leads=tallies.leads,
            failed=calls,
            failed_by_day=by_day,
        )


@dataclass(frozen=True, slots=True)
class _Tallies:
    by_day: dict[date, Tally]
    providers: dict[int, Tally]
    visit_types: dict[int, Tally] = field(default_factory=dict)
    bookers: dict[str, Tally] = field(default_factory=dict)
    leads: Counter[str] = field(default_factory=Counter)

    def add_day(self, row: Record, booker: Actor) -> None:
        outcome = row["status"] if row["status"] in OUTCOMES else "open"
        for tally in (*self._both(row), self.by_day[row["day"]], self.bookers.setdefault(booker.id, Tally())):
            tally.outcomes[outcome] += row["appointments"]
            tally.bookers[booker.kind] += row["appointments"]
            if outcome != "cancelled":
                tally.booked_minutes += row["minutes"]

    def add_lead(self, row: Record) -> None:
        for tally in self._both(row):
            tally.lead_days[row["lead_days"]] += row["appointments"]
        bucket = next((at for at, last in enumerate(_LEAD_ENDS) if row["lead_days"] <= last), len(_LEAD_ENDS))
        self.leads[LEADS[bucket]] += row["appointments"]

    def _both(self, row: Record) -> tuple[Tally, Tally]:
        return (
            self.providers.setdefault(row["provider_id"], Tally()),
            self.visit_types.setdefault(row["visit_type_id"], Tally()),
        )


def _with_open_minutes(directory: Directory, period: Period) -> dict[int, Tally]:
    """By the hours of today's directory: earlier ones are not kept."""
    return {
        provider.id: Tally(
            open_minutes=provider.capacity
            * sum(
                end - start
                for location in directory.locations.values()
                if location.id in provider.location_ids
                for times in [OpenTimes(directory.practice, provider, location)]
                for day in period.days
                for start, end in times.open_spans(day)
            )
        )
        for provider in directory.providers.values()
        if provider.active and period.provider_id in (None, provider.id)
    }


def _failed_calls(
    rows: Iterable[Record], period: Period, time_zone: ZoneInfo
) -> tuple[list[FailedCalls], dict[date, Counter[str]]]:
    calls: Counter[tuple[str, str, int, str]] = Counter()
    by_day: dict[date, Counter[str]] = {day: Counter() for day in period.days}
    for row in rows:
        day = row["began_at"].astimezone(time_zone).date()
        if day in by_day:
            by_day[day][row["code"]] += row["requests"]
            calls[row["name"], row["operation"], row["status"], row["code"]] += row["requests"]
    return [FailedCalls(*key, requests) for key, requests in calls.most_common()], by_day


def _named(tallies: Mapping[int, Tally], records: Mapping[int, Provider | VisitType]) -> list[tuple[str, Tally]]:
    """A record that was added a moment ago may not be in this directory yet."""
    return [(records[number].name if number in records else str(number), tally) for number, tally in tallies.items()]
