"""Reads patients and appointments from a FHIR server and returns domain records with our ids."""

import re
from collections.abc import Container, Iterable, Sequence
from collections.abc import Set as AbstractSet
from datetime import UTC, date, datetime, timedelta
from operator import itemgetter
from typing import Any

from frontdesk.domain.appointments import Appointment
from frontdesk.domain.local_time import local_date, minute_of
from frontdesk.domain.names import digits
from frontdesk.domain.patients import Contact, Patient, PhoneMatch
from frontdesk.systems.fhir.capabilities import ServerCapabilities
from frontdesk.systems.fhir.records import KnownRecord
from frontdesk.systems.fhir.resources.appointments import (
    ATTENDED,
    LIVE,
    Facts,
    PracticeMap,
    attending,
    patient_of,
    time_taken,
)
from frontdesk.systems.fhir.resources.elements import Resource, instant, reference_of, stamp, whole_minutes
from frontdesk.systems.fhir.resources.patients import is_same, parse_patient
from frontdesk.systems.fhir.transport.deadline import Deadline, gather_all
from frontdesk.systems.fhir.transport.queries import CombinedQuery, Query, ReadQuery, SearchQuery, searches
from frontdesk.systems.fhir.upstream import Upstream
from frontdesk.systems.port import AppointmentFilter, AppointmentPage, AppointmentPosition

MAX_APPOINTMENT_LENGTH = timedelta(days=1)  # how far back one that overlaps may have begun
_LISTING_ATTEMPTS = 3  # another after an appointment was moved meanwhile
_ENCOUNTERED = ("arrived", "triaged", "in-progress", "onleave", "finished")
_RESERVED = re.compile(r"[\\,|$]")  # escaped in the values of a search
_ALL_ZONES = timedelta(hours=26)  # any zone's date lies within this much of the same date in UTC


def search_of(
    server: ServerCapabilities, first_name: str, last_name: str, phone: str, dob: date
) -> list[tuple[str, str]]:
    """How a person is searched for: by date of birth, and wholly in another frontdesk, which lists nobody."""
    by_date = [("birthdate", dob.isoformat())]
    if not server.is_frontdesk:
        return by_date
    by_name = [("given", first_name), ("family", last_name), ("phone", phone)]
    return [*by_date, *((name, _RESERVED.sub(r"\\\g<0>", value)) for name, value in by_name)]


class Reader:
    def __init__(self, upstream: Upstream, practice: PracticeMap, deadline: Deadline) -> None:
        self._upstream = upstream
        self._client = upstream.client
        self._practice = practice
        self._deadline = deadline

    async def matching(
        self, first_name: str, last_name: str, phone: str, dob: date, phone_match: PhoneMatch = "anywhere"
    ) -> list[Resource]:
        """Searches and applies our own match rule, because servers compare names differently."""
        if not digits(phone):  # it matches nobody, and another frontdesk would refuse the search
            return []
        asked = search_of(self._upstream.server, first_name, last_name, phone, dob)
        found = await self._client.search(self._deadline, "Patient", asked)
        return [each for each in found if is_same(each, first_name, last_name, phone, dob, phone_match)]

    async def patients(self, resources: Sequence[Resource]) -> list[Patient]:
        references = [reference_of(resource) for resource in resources]
        known, seen = await gather_all(
            self._upstream.records.known(references),
            self._client.read_all(self._deadline, *(self._seen(reference) for reference in references)),
        )
        found = []
        for resource, reference, was_seen in zip(resources, references, seen, strict=True):
            record = known[reference]
            if (patient := parse_patient(resource, record.local_id, record.number or 0, seen=was_seen)) is not None:
                found.append(patient)
        return sorted(found, key=lambda patient: patient.number)

    async def patient(self, local: str | int) -> tuple[Patient, Resource] | None:
        record = await self.patient_record(local)
        if record is None:
            return None
        found: tuple[Patient, Resource] | None
        [found] = await self._client.read_all(self._deadline, self.patient_query(record))
        return found

    async def patient_record(self, local: str | int) -> KnownRecord | None:
        record = await self._upstream.records.find(local)
        return record if record is not None and record.reference.startswith("Patient/") else None

    def patient_query(
        self, record: KnownRecord, *, seen: bool = True
    ) -> CombinedQuery[tuple[Patient, Resource] | None]:
        """Reads a patient and, with `seen`, whether the practice has seen them."""
        visits = self._seen(record.reference) if seen else CombinedQuery((), lambda _: False)

        def result(found: Sequence[Any]) -> tuple[Patient, Resource] | None:  # results of the queries
            resource = found[0]
            if resource is None:
                return None
            patient = parse_patient(resource, record.local_id, record.number or 0, seen=visits.result(found[1:]))
            return None if patient is None else (patient, resource)

        return CombinedQuery([ReadQuery(record.reference), *visits.queries], result)

    async def contacts(self, patient_ids: Sequence[str]) -> dict[str, Contact]:
        records = {record.reference: record.local_id for record in await self._upstream.records.find_all(patient_ids)}
        people = [reference.removeprefix("Patient/") for reference in records if reference.startswith("Patient/")]
        found: dict[str, Contact] = {}
        for resource in await self._people(people):
            local_id = records.get(reference_of(resource))
            known = None if local_id is None else parse_patient(resource, local_id, 0, seen=False)
            if known is not None:
                found[known.id] = Contact(known.first_name, known.last_name, known.dob, known.phone)
        return found

    async def _people(self, ids: Sequence[str]) -> list[Resource]:
        """A single patient is read, because some servers cannot be searched for patients."""
        if len(ids) != 1:
            return await self._client.search_any(self._deadline, "Patient", "_id", ids)
        resource = await self._client.read(self._deadline, f"Patient/{ids[0]}")
        return [] if resource is None else [resource]

    def _seen(self, patient: str) -> CombinedQuery[bool]:
        """Whether the patient has been to the practice before, as far as the server can be searched for it. Another
        frontdesk says so in the Patient."""
        queries: list[Query] = [
            SearchQuery(kind, [("patient", patient), ("status", ",".join(statuses))], one=True)
            for kind, statuses in (("Appointment", ATTENDED), ("Encounter", _ENCOUNTERED))
            if self._upstream.server.can(f"{kind} search-type") and not self._upstream.server.is_frontdesk
        ]
        return CombinedQuery(queries, lambda found: any(found))

    def is_busy(
        self, patient: str, starts: datetime, ends: datetime, own: AbstractSet[str], beside: Sequence[str] = ()
    ) -> CombinedQuery[bool]:
        """Whether the patient has an appointment that overlaps [starts, ends), other than their `own` one. Those of the
        practitioners `beside` are searched with them."""
        taken = appointments_at(self._upstream.server, starts, ends)
        queries = [SearchQuery("Appointment", [("patient", patient), *taken])]
        if beside:
            queries = searches("Appointment", "actor", [*beside, patient], taken)
        first, last = whole_minutes(starts, ends)

        def overlaps(resource: Resource) -> bool:
            span = time_taken(resource)
            return (
                span is not None
                and span[0] < last
                and span[1] > first
                and patient in attending(resource)
                and reference_of(resource) not in own
            )

        return CombinedQuery(queries, lambda found: any(overlaps(each) for page in found for each in page))

    async def appointment(self, appointment_id: str) -> tuple[Appointment, Resource] | None:
        record = await self._upstream.records.find(appointment_id)
        if record is None or not record.reference.startswith("Appointment/"):
            return None
        resource = await self._client.read(self._deadline, record.reference)
        if resource is None:
            return None
        found = await self._appointments([resource], {record.reference: record})
        return (found[0], resource) if found else None

    async def page(self, wanted: AppointmentFilter, limit: int, after: AppointmentPosition | None) -> AppointmentPage:
        """Moves through us keep their place in a listing; the server does not tell those made elsewhere."""
        records, moved, place = self._upstream.records, dict[str, datetime](), None
        if after is None:
            listing = await records.begin_listing()
        else:
            listing, place = after.listing, (after.starts_at, after.id)
            moved = await records.moves_since(listing)
        for _ in range(_LISTING_ATTEMPTS):
            unmoved = await self._in_order(wanted, limit + 1, place, moved)
            found = sorted(
                [((each.starts_at, each.id), each) for each in unmoved]
                + [
                    ((moved[each.id], each.id), each)
                    for each in await self._filtered(await self._by_id(moved), wanted)
                    if each.id in moved and (place is None or (moved[each.id], each.id) > place)
                ],
                key=itemgetter(0),
            )
            before, moved = moved, await records.moves_since(listing)
            if moved == before:
                break
        last = AppointmentPosition(*found[limit - 1][0], listing) if len(found) > limit else None
        return AppointmentPage([each for _, each in found[:limit]], last)

    async def _by_id(self, appointment_ids: Iterable[str]) -> list[Appointment]:
        records = {record.reference: record for record in await self._upstream.records.find_all([*appointment_ids])}
        ids = [reference.removeprefix("Appointment/") for reference in records]
        return await self._appointments(
            await self._client.search_any(self._deadline, "Appointment", "_id", ids), records
        )

    async def _in_order(
        self, wanted: AppointmentFilter, limit: int, after: tuple[datetime, str] | None, moved: Container[str]
    ) -> list[Appointment]:
        """The first appointments after a position, in order of start and id, without the moved ones."""
        parameters = await self._parameters(wanted, after)
        if parameters is None:
            return []
        found: list[Appointment] = []
        in_order, latest = True, ""
        async for page in self._client.pages(self._deadline, "Appointment", parameters):
            starts = [stamp(moment) for each in page if (moment := instant(each.get("start"))) is not None]
            in_order = in_order and starts == sorted(starts) and (not starts or starts[0] >= latest)
            latest = starts[-1] if starts else latest
            found += [
                each
                for each in await self._filtered(await self._appointments(page, {}), wanted)
                if each.id not in moved and (after is None or (each.starts_at, each.id) > after)
            ]
            found.sort(key=lambda each: (each.starts_at, each.id))
            # Equal starts come in any order: the page is complete once a later start was seen.
            if in_order and len(found) >= limit and latest > stamp(found[limit - 1].starts_at):
                break
        return found[:limit]

    async def _parameters(
        self, wanted: AppointmentFilter, after: tuple[datetime, str] | None
    ) -> list[tuple[str, str]] | None:
        """The search parameters, or None if nothing can match."""
        parameters = [("_sort", "date")]
        if wanted.patient_id is not None:
            record = await self._upstream.records.find(wanted.patient_id)
            if record is None:
                return None
            parameters.append(("patient", record.reference))
        if wanted.provider_id is not None:
            people = self._practice.provider_references(wanted.provider_id)
            if not people:
                return None
            parameters.append(("actor", ",".join(people)))
        earliest = None if wanted.first is None else _midnight(wanted.first) - _ALL_ZONES - wanted.earlier
        if after is not None:
            earliest = max(earliest, after[0]) if earliest is not None else after[0]
        if earliest is not None:
            parameters.append(("date", f"ge{stamp(earliest)}"))
        if wanted.last is not None:
            parameters.append(("date", f"lt{stamp(_midnight(wanted.last) + timedelta(days=1) + _ALL_ZONES)}"))
        return parameters

    async def _appointments(self, resources: Sequence[Resource], known: dict[str, KnownRecord]) -> list[Appointment]:
        """The appointments that can be mapped to the directory."""
        mapped = [
            (resource, patient)
            for resource in resources
            if (patient := patient_of(resource)) is not None
            and self._practice.appointment(resource, "", "", Facts()) is not None
        ]
        references = [each for resource, patient in mapped for each in (reference_of(resource), patient)]
        known = {**await self._upstream.records.known([each for each in references if each not in known]), **known}
        found = []
        for resource, patient in mapped:
            record = known[reference_of(resource)]
            appointment = self._practice.appointment(resource, record.local_id, known[patient].local_id, record.facts)
            assert appointment is not None
            found.append(appointment)
        return found

    async def _filtered(self, appointments: list[Appointment], wanted: AppointmentFilter) -> list[Appointment]:
        found = [each for each in appointments if self._fits(each, wanted)]
        if wanted.known_to is None or not found:
            return found
        known = await self._upstream.records.known_to(wanted.known_to, [each.patient_id for each in found])
        return [each for each in found if each.patient_id in known]

    def _fits(self, appointment: Appointment, wanted: AppointmentFilter) -> bool:
        zone = self._practice.directory.locations[appointment.location_id].time_zone
        day = local_date(minute_of(appointment.starts_at), zone)
        begins = local_date(minute_of(appointment.starts_at + wanted.earlier), zone)
        return (
            wanted.patient_id in (None, appointment.patient_id)
            and wanted.provider_id in (None, appointment.provider_id)
            and wanted.location_id in (None, appointment.location_id)
            and wanted.visit_type_id in (None, appointment.visit_type_id)
            and wanted.procedure_id in (None, appointment.procedure_id)
            and (wanted.first is None or begins >= wanted.first)
            and (wanted.last is None or day <= wanted.last)
        )


def appointments_at(server: ServerCapabilities, starts: datetime, ends: datetime) -> list[tuple[str, str]]:
    """The search parameters of appointments that may overlap [starts, ends)."""
    dates = [("date", f"ge{stamp(starts - MAX_APPOINTMENT_LENGTH)}"), ("date", f"lt{stamp(ends)}")]
    return [*dates, ("status", ",".join(LIVE))] if server.searches_exactly else dates


def _midnight(day: date) -> datetime:
    clamped = min(max(day, date(1900, 1, 1)), date(9000, 1, 1))
    return datetime(clamped.year, clamped.month, clamped.day, tzinfo=UTC)
