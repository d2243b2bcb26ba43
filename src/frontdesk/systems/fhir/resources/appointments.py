"""Converts Appointment resources to appointments and back; docs/users/fhir.md has the mapping."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from frontdesk.domain.appointments import Appointment
from frontdesk.domain.directory import Directory, Procedure, VisitType
from frontdesk.domain.text import cleaned
from frontdesk.systems.fhir.resources.elements import (
    INTENTS,
    Resource,
    coding_resource,
    codings,
    inside,
    instant,
    listed,
    references,
    relative,
    service_references,
    stamp,
    whole_minutes,
    with_identifier,
    without_empty,
    without_identifiers,
)
from frontdesk.systems.fhir.settings import Coding, FhirSettings, Service, token
from frontdesk.systems.fhir.write_data import WriteData

# Other statuses are not shown: proposed, waitlist, entered-in-error.
STATUSES = {
    "pending": "booked",
    "booked": "booked",
    "arrived": "arrived",
    "checked-in": "arrived",
    "fulfilled": "completed",
    "noshow": "noShow",
    "cancelled": "cancelled",
}
RECORDED = {"arrived": "arrived", "completed": "fulfilled", "noShow": "noshow"}  # by the practice, after the fact
ATTENDED = ("arrived", "checked-in", "fulfilled")
_OF_PRACTICE = ("Practitioner", "PractitionerRole", "Location", "HealthcareService")
LIVE = ("proposed", "pending", "booked", "arrived", "fulfilled", "checked-in", "waitlist")
_TAKES_NO_TIME = ("cancelled", "noshow", "entered-in-error")
_MOVED = ("status", "serviceType", "start", "end", "minutesDuration", "slot")


@dataclass(frozen=True, slots=True)
class Facts:
    """What we store about an appointment that the server does not."""

    attendance_confirmed_at: datetime | None = None
    cancelled_at: datetime | None = None
    rescheduled_from: datetime | None = None


@dataclass(frozen=True, slots=True)
class PracticeMap:
    """Maps references of the server to ids of the directory, former references included."""

    settings: FhirSettings
    directory: Directory
    location_ids: Mapping[str, int]
    provider_ids: Mapping[str, int]

    def services(self, visit_type_id: int, procedure_id: int) -> tuple[Service, Service]:
        return self.settings.visit_type(visit_type_id), self.settings.procedure(procedure_id)

    def provider_references(self, provider_id: int) -> list[str]:
        return _references(self.provider_ids, provider_id)

    def service_of(self, resource: Resource) -> tuple[VisitType, Procedure] | None:
        """The visit type and procedure of an appointment; if only the procedure is given, its first visit type."""
        stated = {
            *codings(resource.get("serviceType")),
            *service_references(resource.get("serviceType")),
            *references(actors(resource), "HealthcareService"),
        }
        by_procedure_only = None
        for visit_type in self.directory.visit_types.values():
            for procedure in visit_type.procedures:
                if token(self.settings.procedure(procedure.id)) not in stated:
                    continue
                if token(self.settings.visit_type(visit_type.id)) in stated:
                    return visit_type, procedure
                by_procedure_only = by_procedure_only or (visit_type, procedure)
        return by_procedure_only

    def place_of(self, resource: Resource) -> tuple[int, int] | None:
        """The provider and location; without a location, the provider's only one."""
        practitioners = references(actors(resource), "Practitioner")
        provider_id = next((self.provider_ids[each] for each in practitioners if each in self.provider_ids), None)
        provider = None if provider_id is None else self.directory.providers.get(provider_id)
        if provider is None:
            return None
        stated = references(actors(resource), "Location")
        known = [self.location_ids[each] for each in stated if each in self.location_ids]
        if stated or len(provider.location_ids) != 1:
            places = [number for number in known if number in self.directory.locations]
        else:
            places = list(provider.location_ids)
        return (provider.id, places[0]) if places else None

    def appointment(self, resource: Resource, local_id: str, patient_id: str, facts: Facts) -> Appointment | None:
        """Converts an Appointment; None if it cannot be mapped to the directory."""
        service, place, status = self.service_of(resource), self.place_of(resource), self.status(resource)
        starts, ends = instant(resource.get("start")), instant(resource.get("end"))
        if service is None or place is None or status is None or starts is None:
            return None
        visit_type, procedure = service
        starts = starts.replace(microsecond=0)  # positions in lists are whole seconds
        updated = instant(inside(resource, "meta").get("lastUpdated")) or starts
        return Appointment(
            id=local_id,
            patient_id=patient_id,
            provider_id=place[0],
            location_id=place[1],
            visit_type_id=visit_type.id,
            procedure_id=procedure.id,
            status=status,
            starts_at=starts,
            ends_at=ends
            if ends is not None and ends > starts
            else starts + timedelta(minutes=procedure.duration_minutes),
            created_at=instant(resource.get("created")) or updated,
            updated_at=updated,
            attendance_confirmed_at=facts.attendance_confirmed_at if status == "confirmed" else None,
            cancelled_at=(facts.cancelled_at or updated) if status == "cancelled" else None,
            cancellation_reason=_reason(resource) if status == "cancelled" else None,
            rescheduled_from=facts.rescheduled_from,
            of_several=len({each for each in attending(resource) if each.startswith("Patient/")}) > 1,
        )

    def status(self, resource: Resource) -> str | None:
        status = STATUSES.get(str(resource.get("status")))
        return "confirmed" if status == "booked" and self.is_confirmed(resource) else status

    def is_confirmed(self, resource: Resource) -> bool:
        tag = self.settings.attendance
        if tag is not None:
            tags = listed(inside(resource, "meta").get("tag"))
            return any((each.get("system"), each.get("code")) == (tag.system, tag.code) for each in tags)
        participants = listed(resource.get("participant"))
        return any(each.get("status") == "accepted" for each in participants if _actor_kind(each) == "Patient")

    def new_appointment(self, data: WriteData, patient: str, slots: list[str], intent: str) -> Resource:
        """A new booking. The patient's participation is unconfirmed until `confirm_attendance`."""
        return without_empty(
            {
                "resourceType": "Appointment",
                "identifier": [{"system": INTENTS, "value": intent}],
                "status": "booked",
                "created": stamp(datetime.fromisoformat(data["askedAt"])),
                **self._slot_fields(data, slots),
                "participant": [
                    {"actor": {"reference": patient}, "status": "needs-action"},
                    *self._practice_participants(data),
                ],
            }
        )

    def moved(self, resource: Resource, data: WriteData, slots: list[str], intent: str) -> Resource:
        """The appointment moved to another slot; its attendance has to be confirmed again."""
        others = [each for each in listed(resource.get("participant")) if _actor_kind(each) not in _OF_PRACTICE]
        moved = without_empty(
            {
                **resource,
                "identifier": with_identifier(resource, INTENTS, intent),
                "status": "booked",
                **self._slot_fields(data, slots),
                "participant": [*others, *self._practice_participants(data)],
            }
        )
        return self._with_attendance(moved, confirmed=False)

    def in_status(self, resource: Resource, status: str, reason: str | None, intent: str) -> Resource:
        """The appointment in one of our statuses, without a cancellation reason of a former status."""
        changed = marked(resource, intent)
        if status == "confirmed":
            return self._with_attendance(changed, confirmed=True)
        cancellation = {"text": reason} if reason and status == "cancelled" else None
        return without_empty({**changed, "status": RECORDED.get(status, status), "cancelationReason": cancellation})

    def place_and_time(self, resource: Resource) -> Resource:
        """What a move changes, as it was before: enough to undo the move, without personal data."""
        kept = {key: resource[key] for key in _MOVED if key in resource}
        participants = [each for each in listed(resource.get("participant")) if _actor_kind(each) in _OF_PRACTICE]
        return {**kept, "participant": participants, "confirmed": self.is_confirmed(resource)}

    def put_back(self, resource: Resource, before: Resource, intent: str) -> Resource:
        """The appointment as it was before a move, without the move's intent."""
        others = [each for each in listed(resource.get("participant")) if _actor_kind(each) not in _OF_PRACTICE]
        restored = {
            **{key: value for key, value in resource.items() if key not in _MOVED},
            **{key: value for key, value in before.items() if key in _MOVED},
            "identifier": without_identifiers(resource, INTENTS, intent),
            "participant": [*others, *listed(before.get("participant"))],
        }
        return self._with_attendance(without_empty(restored), confirmed=before["confirmed"])

    def differs(self, asked: Resource, stored: Resource) -> bool:
        """Whether what the server stored differs from the request."""
        slots, asked_slots = set(references(stored.get("slot"))), set(references(asked.get("slot")))
        return (
            instant(stored.get("start")) != instant(asked.get("start"))
            or instant(stored.get("end")) != instant(asked.get("end"))
            or (bool(slots) and bool(asked_slots) and slots != asked_slots)  # `$book` makes slots of its own
            or not set(references(actors(asked))) <= set(references(actors(stored)))
        )

    def _slot_fields(self, data: WriteData, slots: list[str]) -> Resource:
        visit_type = self.directory.visit_types[data["visitTypeId"]]
        procedure = visit_type.procedure(data["procedureId"])
        assert procedure is not None
        starts, ends = (datetime.fromisoformat(data[key]).astimezone(UTC) for key in ("startsAt", "endsAt"))
        services = zip(self.services(visit_type.id, procedure.id), (visit_type.name, procedure.name), strict=True)
        return {
            "serviceType": [
                {"coding": [coding_resource(service)], "text": name}
                for service, name in services
                if isinstance(service, Coding)
            ],
            "start": stamp(starts),
            "end": stamp(ends),
            "minutesDuration": int((ends - starts).total_seconds()) // 60,
            "slot": [{"reference": slot} for slot in slots],
        }

    def _practice_participants(self, data: WriteData) -> list[Resource]:
        services = self.services(data["visitTypeId"], data["procedureId"])
        taking_part = [
            self._reference(self.settings.providers, self.provider_ids, data["providerId"]),
            self._reference(self.settings.locations, self.location_ids, data["locationId"]),
            *(service for service in services if isinstance(service, str)),
        ]
        return [{"actor": {"reference": each}, "status": "accepted"} for each in dict.fromkeys(taking_part)]

    @staticmethod
    def _reference(mapped: Mapping[int, str], known: Mapping[str, int], wanted: int) -> str:
        """The former one if the practice file no longer names the record: a write may have begun before. Raises
        LookupError if there are several, because nobody knows which was booked."""
        if wanted in mapped:
            return mapped[wanted]
        former = _references(known, wanted)
        if len(former) != 1:
            raise LookupError(wanted)
        return former[0]

    def _with_attendance(self, resource: Resource, *, confirmed: bool) -> Resource:
        tag = self.settings.attendance
        if tag is not None:
            meta = inside(resource, "meta")
            tags = [
                each
                for each in listed(meta.get("tag"))
                if (each.get("system"), each.get("code")) != (tag.system, tag.code)
            ]
            meta = without_empty({**meta, "tag": [*tags, coding_resource(tag)] if confirmed else tags})
            return without_empty({**resource, "meta": meta})
        status = "accepted" if confirmed else "needs-action"
        participants = [
            {**each, "status": status} if _actor_kind(each) == "Patient" else each
            for each in listed(resource.get("participant"))
        ]
        return {**resource, "participant": participants}


def _references(ids: Mapping[str, int], wanted: int) -> list[str]:
    return [reference for reference, number in ids.items() if number == wanted]


def _actor_kind(participant: Resource) -> str:
    return (relative(participant.get("actor")) or "").partition("/")[0]


def marked(resource: Resource, intent: str) -> Resource:
    """The record with the intent of a write."""
    return {**resource, "identifier": with_identifier(resource, INTENTS, intent)}


def undone(resource: Resource, intent: str, reason: str) -> Resource:
    """A record that should not exist, cancelled or inactive and without its intent."""
    identifiers = without_identifiers(resource, INTENTS, intent)
    if resource["resourceType"] == "Patient":
        return without_empty({**resource, "identifier": identifiers, "active": False})
    cancelled = {"status": "cancelled", "cancelationReason": {"text": reason}}
    return without_empty({**resource, "identifier": identifiers, **cancelled})


def actors(resource: Resource) -> list[object]:
    return [participant.get("actor") for participant in listed(resource.get("participant"))]


def attending(resource: Resource) -> list[str]:
    """References to those who take part and have not declined."""
    return references([each.get("actor") for each in listed(resource.get("participant")) if not _has_declined(each)])


def _has_declined(participant: Resource) -> bool:
    return participant.get("status") == "declined"


def time_taken(resource: Resource) -> tuple[int, int] | None:
    """The minutes that an appointment takes of those who attend it; None if it takes no time."""
    starts, ends = instant(resource.get("start")), instant(resource.get("end"))
    if starts is None or resource.get("status") in _TAKES_NO_TIME:
        return None
    if ends is None:
        minutes = resource.get("minutesDuration")
        ends = starts + timedelta(minutes=minutes if isinstance(minutes, int) and 0 < minutes < 100_000 else 1)
    return whole_minutes(starts, max(ends, starts + timedelta(minutes=1)))


def patient_of(resource: Resource) -> str | None:
    return next(iter(references(actors(resource), "Patient")), None)


def _reason(resource: Resource) -> str | None:
    reason = inside(resource, "cancelationReason")
    spelt = [reason.get("text"), *(coding.get("display") for coding in listed(reason.get("coding")))]
    texts = (cleaned(text).strip() for text in spelt if isinstance(text, str))
    return next((text for text in texts if text), None)
