"""Booking and moving an appointment to a time that was chosen in the calendar."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time
from typing import Any

from starlette.responses import Response

from frontdesk.console.forms import read_id
from frontdesk.console.guard import ConsoleRequest, Page
from frontdesk.console.language import gettext as _
from frontdesk.console.pages.calendar import read_day
from frontdesk.console.pages.patients import search_changed, search_patients, search_to_choose
from frontdesk.console.times import FIRST, SECOND
from frontdesk.desk.patients import PatientHits
from frontdesk.domain.appointments import Appointment
from frontdesk.domain.availability import OpenTimes
from frontdesk.domain.booking_rules import BrokenRule, why_closed
from frontdesk.domain.directory import Directory, Location, Procedure, Provider, VisitType
from frontdesk.domain.errors import Problem
from frontdesk.domain.local_time import is_skipped, minute_of, occurrences, zone
from frontdesk.domain.slot_ids import SlotRef
from frontdesk.texts import N_

SHOWN_ON_FORM = ("slot_unavailable", "validation", "conflict", "upstream_unavailable")
_MAX_NEAREST = 6
_SKIPPED = N_("The clocks skip this time on that day.")
NO_OVERRIDE: Mapping[str, object] = {"broken": (), "fields": {}}


@dataclass(frozen=True, slots=True)
class ChosenTime:
    """A time of a provider at a location, as the location's clock shows it."""

    provider: Provider
    location: Location
    day: date
    clock: time  # its fold names the occurrence of a time that the day has twice

    @property
    def start(self) -> datetime:
        return datetime.combine(self.day, self.clock, zone(self.location.time_zone))

    @property
    def occurrences(self) -> list[tuple[str, str]]:
        """The choices where the day has the time twice: the value that a form sends, and the name of the zone."""
        return occurrence_choices(self.day, self.clock, self.location)

    @property
    def errors(self) -> dict[str, str]:
        return {"time": _(_SKIPPED)} if is_skipped(self.day, self.clock, self.location.time_zone) else {}

    def slot(self, visit_type: VisitType, procedure: Procedure) -> SlotRef:
        if self.errors:
            raise Problem("validation", _SKIPPED)
        ids = (self.provider.id, self.location.id, visit_type.id, procedure.id)
        return SlotRef(*ids, minute_of(self.start), procedure.duration_minutes)

    def slot_id(self, request: ConsoleRequest, visit_type: VisitType, procedure: Procedure) -> str:
        return request.desk.engine.slot_ids(request.staff.practice_id).encode(self.slot(visit_type, procedure))

    @property
    def fields(self) -> dict[str, str]:
        """The time as the fields of a form."""
        place = {"provider": str(self.provider.id), "location": str(self.location.id)}
        return {**place, "date": self.day.isoformat(), "time": clock_field(self.start)}

    async def nearest(self, request: ConsoleRequest, visit_type: VisitType, procedure: Procedure) -> list["ChosenTime"]:
        """Open times of the day next to this one, ascending."""
        ids = {"providerId": self.provider.id, "locationId": self.location.id}
        visit = {"visitTypeId": visit_type.id, "procedureId": procedure.id}
        days = {"from": self.day.isoformat(), "to": self.day.isoformat()}
        found = await request.run("search_slots", {**ids, **visit, **days, "limit": 200})
        starts = [datetime.fromisoformat(item["start"]) for item in found["items"]]
        nearest = sorted(sorted(starts, key=lambda each: abs(each - self.start))[:_MAX_NEAREST])
        local = [each.astimezone(zone(self.location.time_zone)) for each in nearest]
        return [replace(self, day=each.date(), clock=each.time()) for each in local]


async def _ask_whom(request: ConsoleRequest) -> Response:
    directory = await request.desk.calendar.directory(request.context)
    return await _book_page(request, directory, chosen_time(directory, dict(request.http.query_params)))


async def _book(request: ConsoleRequest) -> Response:
    """Searches the patient, or books for the one who was chosen."""
    form = request.form
    directory = await request.desk.calendar.directory(request.context)
    fields = {name: form.get(name) for name in ("provider", "location", "date", "time", "occurrence")}
    chosen = chosen_time(directory, fields | ({"time": form.get("at"), "occurrence": ""} if form.get("at") else {}))
    patient_id, visit = form.get("patient"), visit_of(directory, form.get("visit"))
    if not patient_id or search_changed(form):
        hits, errors, status = await search_to_choose(request)
        return await _book_page(request, directory, chosen, hits=hits, errors=errors, status=status)
    if chosen.errors:
        hits = (await search_patients(request, form.get("search")))[0]
        return await _book_page(request, directory, chosen, hits=hits, status=422)
    if visit is None:
        return await _book_page(request, directory, chosen, errors={"visit": _("Choose a visit.")}, status=422)
    slot_id = chosen.slot_id(request, *visit)
    try:
        made = await request.run("book_appointment", {"patientId": patient_id, "slotId": slot_id})
    except Problem as problem:
        if problem.code not in SHOWN_ON_FORM:
            raise
        hits = (await search_patients(request, form.get("search")))[0]
        nearest = await chosen.nearest(request, *visit) if problem.code == "slot_unavailable" else []
        broken = await _broken_rules(request, chosen.slot(*visit), patient_id)
        return await _book_page(request, directory, chosen, hits=hits, refused=problem, nearest=nearest, broken=broken)
    return request.redirect(f"/appointments/{made['appointmentId']}", notice="appointment_booked")


async def _book_page(
    request: ConsoleRequest,
    directory: Directory,
    chosen: ChosenTime,
    *,
    hits: PatientHits | None = None,
    errors: dict[str, str] | None = None,
    refused: Problem | None = None,
    nearest: list[ChosenTime] | None = None,
    broken: Sequence[BrokenRule] = (),
    status: int = 200,
) -> Response:
    if not await request.desk.patients.searchable(request.context):
        raise Problem("capability_not_supported")
    form = request.form
    overrides = await request.desk.overrides.offered(request.context)
    closed = None
    if refused is None and directory.practice.keeps_own_calendar:
        closed = why_closed(directory, chosen.provider, chosen.location, minute_of(chosen.start))
    visits = all_visits(directory)
    usual = [each for each in visits if chosen.provider.performs(each[1].id)]
    return request.render(
        "book_at.html",
        title=_("New booking"),
        status=status if refused is None else refused.status,
        chosen=chosen,
        visits=usual,
        other_visits=[each for each in visits if each not in usual] if overrides else [],
        overrides=overrides,
        closed=closed,
        broken=broken,
        fields={**chosen.fields, "visit": form.get("visit"), "patient": form.get("patient")},
        visit=form.get("visit"),
        text=form.get("search"),
        patient_id=form.get("patient"),
        hits=hits,
        errors=chosen.errors | (errors or {}),
        refused=refused,
        nearest=nearest or [],
    )


async def _move(request: ConsoleRequest) -> Response:
    """The appointment's own time to start from; for another one, what would change."""
    asked = request.http.query_params
    view = await request.desk.appointments.read(request.context, request.param("appointment_id"))
    if "reschedule_appointment" not in view.may:
        raise Problem("conflict", "This appointment can no longer be moved.")
    appointment = view.appointment
    directory = await request.desk.calendar.directory(request.context)
    own = {"provider": appointment.provider_id, "location": appointment.location_id,
           "date": view.start.date().isoformat(), "time": clock_field(view.start)}  # fmt: skip
    given = {name: asked.get(name) or str(value) for name, value in own.items()}
    given |= {"occurrence": asked.get("occurrence", "")}
    if "provider" in asked:  # who may be elsewhere at that time
        given["location"] = asked.get("location", "")
    chosen = chosen_time(directory, given, appointment.location_id)
    visit = visit_of(directory, f"{appointment.visit_type_id}-{appointment.procedure_id}")
    assert visit is not None
    slot: dict[str, object] | None = None
    nearest: list[ChosenTime] = []
    broken: Sequence[BrokenRule] = ()
    overrides = await request.desk.overrides.offered(request.context)
    # As minutes: datetimes of one zone are compared by their clocks, which show some times twice.
    apart = abs(minute_of(chosen.start) - minute_of(view.start))
    same_provider = chosen.provider.id == appointment.provider_id
    if not chosen.errors and (apart or not same_provider):
        slot = dict(await request.run("get_slot", {"slotId": chosen.slot_id(request, *visit)}))
        broken = await _broken_rules(request, chosen.slot(*visit), appointment.patient_id, appointment)
        overlaps_itself = same_provider and apart < visit[1].duration_minutes + visit[1].buffer_after_minutes
        slot["available"] = not broken and (slot["available"] or overlaps_itself)
        if not slot["available"]:
            nearest = await chosen.nearest(request, *visit)
    return request.render(
        "move_at.html",
        title=_("Move appointment"),
        view=view,
        chosen=chosen,
        slot=slot,
        nearest=nearest,
        errors=chosen.errors,
        overrides=overrides,
        broken=broken,
        fields={**chosen.fields, "appointment": appointment.id},
        providers=[
            (each.id, each.name)
            for each in directory.providers.values()
            if each.active and each.performs(appointment.procedure_id) and chosen.location.id in each.location_ids
        ],
    )


async def _broken_rules(
    request: ConsoleRequest, slot: SlotRef, patient_id: str, moved: Appointment | None = None
) -> Sequence[BrokenRule]:
    """What an override would break; empty where there can be none."""
    if not await request.desk.overrides.offered(request.context):
        return ()
    try:
        return await request.desk.overrides.broken_rules(request.context, slot, patient_id, moved)
    except Problem:
        return ()


async def override_of(
    request: ConsoleRequest, slot: Mapping[str, Any], patient_id: str, moved: Appointment | None = None
) -> Mapping[str, object]:
    """What a page shows of an override for a slot that is not open: the broken rules, and the fields of its form."""
    directory = await request.desk.calendar.directory(request.context)
    place = {"provider": str(slot["providerId"]), "location": str(slot["locationId"])}
    start = datetime.fromisoformat(slot["start"]).astimezone(zone(slot["timeZone"]))
    chosen = chosen_time(directory, {**place, "date": start.date().isoformat(), "time": clock_field(start)})
    visit = visit_of(directory, f"{slot['visitTypeId']}-{slot['procedureId']}")
    broken = () if visit is None else await _broken_rules(request, chosen.slot(*visit), patient_id, moved)
    what = {"visit": f"{slot['visitTypeId']}-{slot['procedureId']}", "patient": patient_id}
    return {"broken": broken, "fields": {**chosen.fields, **(what if moved is None else {"appointment": moved.id})}}


def all_visits(directory: Directory) -> list[tuple[str, Procedure, VisitType]]:
    """The practice's visits, and the key that a form has of each."""
    return [
        (f"{visit_type.id}-{procedure.id}", procedure, visit_type)
        for visit_type in directory.visit_types.values()
        for procedure in visit_type.procedures
        if visit_type.active and procedure.active
    ]


def chosen_time(directory: Directory, given: Mapping[str, str], usual_location: int | None = None) -> ChosenTime:
    """Reads the chosen time from a request. Raises Problem if the practice has no such provider, location or visit."""
    provider = directory.providers.get(read_id(given.get("provider", "")) or -1)
    location = directory.locations.get(read_id(given.get("location", "")) or -1)
    day = read_day(given.get("date", ""))
    clock = read_clock(given.get("time", ""), given.get("occurrence", ""))
    if provider is not None and location is None and day is not None and clock is not None:
        location = _location_at(directory, provider, day, clock, usual_location)
    if provider is None or location is None or day is None or clock is None:
        raise Problem("not_found", "There is no such time in the calendar.")
    if not occurrences(day, clock, location.time_zone):
        clock = clock.replace(fold=0)
    return ChosenTime(provider, location, day, clock)


def _location_at(
    directory: Directory, provider: Provider, day: date, clock: time, usual: int | None
) -> Location | None:
    """The provider's location at the time, or else on the day; of several the usual one."""

    def distance(location: Location) -> tuple[bool, bool, bool]:
        times = OpenTimes(directory.practice, provider, location)
        minute = minute_of(datetime.combine(day, clock, zone(location.time_zone)))
        return not times.covers(minute, minute + 1), not times.open_spans(day), location.id != usual

    places = [directory.locations[each] for each in provider.location_ids]
    return min((each for each in places if each.active), key=distance, default=directory.locations.get(usual or -1))


def read_clock(text: str, occurrence: str = "") -> time | None:
    """A time as forms carry it, or as it was typed together with the choice of its occurrence."""
    typed, second, rest = text.partition(SECOND)
    try:
        clock = time.fromisoformat(typed)
    except ValueError:
        return None
    if rest or clock.tzinfo is not None:
        return None
    return clock.replace(second=0, microsecond=0, fold=int(SECOND in (second, occurrence)))


def clock_field(local: datetime) -> str:
    """A time as forms carry it."""
    return f"{local:%H:%M}{SECOND if local.fold else ''}"


def occurrence_choices(day: date, clock: time, location: Location) -> list[tuple[str, str]]:
    found = occurrences(day, clock, location.time_zone)
    return [(SECOND if each.fold else FIRST, each.tzname() or "") for each in found]


def visit_of(directory: Directory, text: str) -> tuple[VisitType, Procedure] | None:
    visit_type_id, _, procedure_id = text.partition("-")
    visit_type = directory.visit_types.get(read_id(visit_type_id) or -1)
    procedure = None if visit_type is None else visit_type.procedure(read_id(procedure_id) or -1)
    return None if visit_type is None or procedure is None else (visit_type, procedure)


PAGES = (
    Page("GET", "/book/at", _ask_whom),
    Page("POST", "/book/at", _book),
    Page("GET", "/appointments/{appointment_id}/move/at", _move),
)
