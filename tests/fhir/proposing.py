"""A FHIR server in memory that proposes and books times itself, as Medplum does.

`$find`, `$book`, `$hold` and `$cancel` follow the source of Medplum 5.1.31 to the letter: parameters, refusals, what is
stored and what is answered. The CapabilityStatement does not list them.
"""

import json
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, time, timedelta
from urllib.parse import parse_qsl, urlsplit
from zoneinfo import ZoneInfo

from tests.fhir.door import Answer
from tests.fhir.fake import Fake, Resource, json_answer, outcome

FOLLOW_UP, LONG_FOLLOW_UP, SHOTS = (f"HealthcareService/{each}" for each in ("follow-up", "long-follow-up", "shots"))
SETTINGS: Resource = {
    "schedulingOperations": "medplum",
    "procedures": {"101": FOLLOW_UP, "102": LONG_FOLLOW_UP, "103": SHOTS},
}
DURATIONS = {FOLLOW_UP: 15, LONG_FOLLOW_UP: 45, SHOTS: 15}
BUFFERS_AFTER = {LONG_FOLLOW_UP: 15}
ALIGNMENT = 15
ZONE = ZoneInfo("America/New_York")
HOURS = (time(9), time(17))
DEFAULT_COUNT, MAX_COUNT = 20, 1000
MAX_SLOTS = 1000  # of a schedule in the range that is asked about
_SERVICE = "https://medplum.com/fhir/service-type-reference"
_BUSY = ("busy", "busy-unavailable", "busy-tentative")
_STORED_AS = {"book": ("booked", {}), "hold": ("pending", {"busy": "busy-tentative"})}

Interval = tuple[datetime, datetime]


def scheduling_resources() -> Iterator[Resource]:
    """Dr. Chen's schedule and the services, without a single slot."""
    for reference in DURATIONS:
        kind, _, name = reference.partition("/")
        yield {"resourceType": kind, "id": name, "name": name}
    services = [_concept(each) for each in (FOLLOW_UP, LONG_FOLLOW_UP)]
    actor = [{"reference": "Practitioner/chen"}]
    yield {"resourceType": "Schedule", "id": "chen-downtown", "actor": actor, "serviceType": services}


class Refused(Exception):
    """A 400 of the server."""


class Proposing(Fake):
    async def answer(self, method: str, target: str, headers: dict[str, str], body: bytes) -> Answer:
        parts = urlsplit(target)
        subject, _, operation = parts.path.strip("/").rpartition("/$")
        try:
            if (method, subject, operation) == ("GET", "Appointment", "find"):
                return json_answer(200, self._found(parse_qsl(parts.query)))
            if (method, subject) == ("POST", "Appointment") and operation in _STORED_AS:
                return self._booked(json.loads(body), operation)
            if (method, operation) == ("POST", "cancel"):
                return self._cancelled(subject)
        except Refused as refused:
            return json_answer(400, outcome(str(refused)))
        document = json.loads(body) if body else {}
        if document.get("type") == "transaction":
            return await self._transacted(document["entry"])
        return await super().answer(method, target, headers, body)

    async def _transacted(self, entries: list[Resource]) -> Answer:
        """Executes all entries or none; references to new records are by their fullUrl."""
        kept, made = dict(self._kept), []
        text = json.dumps([each for each in entries if each["request"]["method"] == "PUT"])
        for each in entries:
            if each["request"]["method"] == "POST":
                made.append(self._made(each["resource"]))
                text = text.replace(each["fullUrl"], f"{made[-1]['resourceType']}/{made[-1]['id']}")
        for each in json.loads(text):
            headers = {"if-match": each["request"]["ifMatch"]}
            answer = await super().answer(
                "PUT", f"/{each['request']['url']}", headers, json.dumps(each["resource"]).encode()
            )
            if answer.status != 200:
                self._kept = kept
                return answer
            made.insert(0, json.loads(answer.body))
        entry = [{"resource": each, "response": {"status": "200"}} for each in made]
        return json_answer(200, {"resourceType": "Bundle", "type": "transaction-response", "entry": entry})

    def _found(self, query: list[tuple[str, str]]) -> Resource:
        given = dict(query)
        if not {"start", "end", "service-type-reference", "schedule"} <= given.keys():
            raise Refused("Expected required parameter")
        starts, ends = (datetime.fromisoformat(given[name]) for name in ("start", "end"))
        count = int(given.get("_count", DEFAULT_COUNT))
        if not 1 <= count <= MAX_COUNT:
            raise Refused("Invalid _count")
        if starts >= ends:
            raise Refused("Invalid search time range")
        if ends - starts > timedelta(days=31):
            raise Refused("Search range cannot exceed 31 days")
        [reference], service = (value for name, value in query if name == "schedule"), given["service-type-reference"]
        if service not in DURATIONS:
            raise Refused("HealthcareService not found")
        schedule = self._schedule(reference)
        if self._slots_between(reference, starts, ends) >= MAX_SLOTS:
            raise Refused("Too many slots in the search range, try smaller bounds")
        if service not in _services(schedule.get("serviceType", [])):
            raise Refused("Schedule is not schedulable for requested service type")
        starts, ends = _within_horizon(schedule.get("planningHorizon", {}), starts, ends)
        duration, after = (timedelta(minutes=each.get(service, 0)) for each in (DURATIONS, BUFFERS_AFTER))
        times = aligned(self._available(reference, starts, ends), duration, after)
        return searchset(_proposal(schedule, service, each, each + duration, after) for each in times[:count])

    def _slots_between(self, schedule: str, starts: datetime, ends: datetime) -> int:
        spans = [interval(each) for each in self._search("Slot", [("schedule", schedule)])]
        return sum(first < ends and last > starts for first, last in spans)

    def _schedule(self, reference: str) -> Resource:
        stored = self._kept.get(reference)
        if stored is None:
            raise Refused("Loading schedule failed")
        if len(stored["actor"]) != 1:
            raise Refused("Scheduling only supported on schedules with exactly one actor")
        return stored

    def _available(self, schedule: str, starts: datetime, ends: datetime) -> list[Interval]:
        slots = self._search("Slot", [("schedule", schedule)])
        free = [interval(each) for each in slots if each["status"] == "free"]
        inside = [(max(first, starts), min(last, ends)) for first, last in free if first < ends and last > starts]
        busy = [interval(each) for each in slots if each["status"] in _BUSY]
        return without(_merged([*opening_times(starts, ends), *inside]), busy)

    def _booked(self, document: Resource, operation: str) -> Answer:
        given = [each["resource"] for each in document.get("parameter", []) if each["name"] == "appointment"]
        if document.get("resourceType") != "Parameters" or len(given) != 1:
            raise Refused("Expected required parameter")
        appointment = dict(given[0])
        slots = appointment.pop("contained", [])
        services = _services(appointment.get("serviceType", []))
        if len(services) != 1:
            raise Refused("Appointment has no service reference, or too many")
        if not slots:
            raise Refused("Appointment has no contained Slot resources")
        if "slot" in appointment:
            raise Refused("Proposed appointment must not have Slot references")
        self._validate(slots, services[0])
        status, instead = _STORED_AS[operation]
        made = [self._made({**each, "status": instead.get(each["status"], each["status"])}) for each in slots]
        references = [{"reference": f"Slot/{each['id']}"} for each in made]
        booked = self._made({**appointment, "status": status, "slot": references})
        entry = [{"resource": each} for each in (booked, *made)]
        return json_answer(201, {"resourceType": "Bundle", "type": "transaction-response", "entry": entry})

    def _made(self, resource: Resource) -> Resource:
        return self._store({**resource, "id": f"made-{next(self._ids)}"})

    def _validate(self, slots: list[Resource], service: str) -> None:
        busy, buffers = ([each for each in slots if each["status"] == status] for status in _BUSY[:2])
        if len(busy) != 1:
            raise Refused("Expected exactly one 'busy' slot per schedule")
        lengths = [last - first for first, last in map(interval, busy)]
        if lengths != [timedelta(minutes=DURATIONS[service])]:
            raise Refused("Slot duration does not match scheduling parameters duration")
        if [last - first for first, last in map(interval, buffers)] != [
            timedelta(minutes=BUFFERS_AFTER[each]) for each in (service,) if each in BUFFERS_AFTER
        ]:
            raise Refused("Expected exactly one 'busy-unavailable' slot starting at the end of the busy slot")
        starts, ends = min(interval(each)[0] for each in slots), max(interval(each)[1] for each in slots)
        schedule = slots[0]["schedule"]["reference"]
        self._schedule(schedule)
        if not any(first <= starts and last >= ends for first, last in self._available(schedule, starts, ends)):
            raise Refused("Requested time slot is not available")

    def _cancelled(self, reference: str) -> Answer:
        appointment = self._kept.get(reference)
        if appointment is None:
            return json_answer(404, outcome("Not found"))
        slots = [each["reference"] for each in appointment.get("slot", [])]
        if not set(slots) <= self._kept.keys():
            raise Refused("Loading slots failed")
        if appointment["status"] not in ("pending", "booked"):
            raise Refused(f"Appointment cannot be canceled in '{appointment['status']}' status")
        cancelled = self._store({**appointment, "status": "cancelled"})
        for each in slots:
            del self._kept[each]
        return json_answer(200, cancelled)


def searchset(found: Iterable[Resource]) -> Resource:
    return {"resourceType": "Bundle", "type": "searchset", "entry": [{"resource": each} for each in found]}


def interval(resource: Resource) -> Interval:
    return datetime.fromisoformat(resource["start"]), datetime.fromisoformat(resource["end"])


def _proposal(schedule: Resource, service: str, starts: datetime, ends: datetime, after: timedelta) -> Resource:
    slots = [_slot(schedule, "busy", starts, ends)]
    if after:
        slots.append(_slot(schedule, "busy-unavailable", ends, ends + after))
    return {
        "resourceType": "Appointment",
        "start": instant_text(starts),
        "end": instant_text(ends),
        "status": "proposed",
        "serviceType": [_concept(service)],
        "participant": [
            {"actor": each, "required": "required", "status": "needs-action"} for each in schedule["actor"]
        ],
        "contained": slots,
    }


def _slot(schedule: Resource, status: str, starts: datetime, ends: datetime) -> Resource:
    times = {"start": instant_text(starts), "end": instant_text(ends)}
    return {"resourceType": "Slot", **times, "schedule": {"reference": f"Schedule/{schedule['id']}"}, "status": status}


def _concept(service: str) -> Resource:
    extension = [{"url": _SERVICE, "valueReference": {"reference": service}}]
    return {"coding": [{"code": service}], "extension": extension}


def _services(concepts: list[Resource]) -> list[str]:
    extensions = [each for concept in concepts for each in concept.get("extension", [])]
    return [each["valueReference"]["reference"] for each in extensions if each["url"] == _SERVICE]


def _within_horizon(horizon: Resource, starts: datetime, ends: datetime) -> Interval:
    if "start" in horizon:
        if ends < datetime.fromisoformat(horizon["start"]):
            raise Refused("Search range ends before schedule planning horizon starts")
        starts = max(starts, datetime.fromisoformat(horizon["start"]))
    if "end" in horizon:
        if starts > datetime.fromisoformat(horizon["end"]):
            raise Refused("Search range starts after schedule planning horizon ends")
        ends = min(ends, datetime.fromisoformat(horizon["end"]))
    return starts, ends


def opening_times(starts: datetime, ends: datetime) -> list[Interval]:
    day, found = starts.astimezone(ZONE).date(), []
    while datetime.combine(day, time(), ZONE) < ends:
        opens, closes = (datetime.combine(day, each, ZONE).astimezone(UTC) for each in HOURS)
        if day.weekday() < 5 and opens < ends and closes > starts:
            found.append((max(opens, starts), min(closes, ends)))
        day += timedelta(days=1)
    return found


def _merged(intervals: list[Interval]) -> list[Interval]:
    merged: list[Interval] = []
    for starts, ends in sorted(intervals):
        if merged and starts <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], ends))
        else:
            merged.append((starts, ends))
    return merged


def without(available: list[Interval], busy: list[Interval]) -> list[Interval]:
    for first, last in busy:
        available = [
            piece
            for starts, ends in available
            for piece in ((starts, min(ends, first)), (max(starts, last), ends))
            if piece[0] < piece[1]
        ]
    return available


def aligned(available: list[Interval], duration: timedelta, after: timedelta = timedelta(0)) -> list[datetime]:
    step, found = timedelta(minutes=ALIGNMENT), []
    for starts, ends in available:
        midnight = datetime.combine(starts.astimezone(UTC).date(), time(), UTC)
        begins = midnight + -(-(starts - midnight) // step) * step
        while begins + duration + after <= ends:
            found.append(begins)
            begins += step
    return found


def instant_text(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
