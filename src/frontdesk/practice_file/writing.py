"""Writes practice files in a fixed order, without default values."""

import json
from collections.abc import Mapping
from datetime import datetime
from functools import cache
from typing import Any

import yaml

from frontdesk.domain.directory import Location, OpeningHours, Practice, Procedure, Provider, VisitType
from frontdesk.practice_file.contents import PatientRecord, PracticeFile
from frontdesk.practice_file.model import (
    DAYS,
    AddressPart,
    ClosurePart,
    FilePart,
    HoursPart,
    LocationPart,
    Part,
    PatientPart,
    PracticePart,
    ProcedurePart,
    ProviderPart,
    TimeOffPart,
    VisitTypePart,
)


def dump(file: PracticeFile) -> str:
    directory = file.directory
    document = _stated(
        FilePart,
        {
            "practice": _practice(directory.practice),
            "locations": [_location(record) for _, record in sorted(directory.locations.items()) if record.active],
            "providers": [_provider(record) for _, record in sorted(directory.providers.items()) if record.active],
            "visitTypes": [_visit_type(record) for _, record in sorted(directory.visit_types.items()) if record.active],
            "patients": [_Line(_patient(record)) for record in file.patients],
        },
    )
    # A negative width prevents line wrapping.
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, default_flow_style=False, width=-1)


def dump_json(file: PracticeFile) -> str:
    document = _jsonable(yaml.load(dump(file), yaml.CSafeLoader))
    return json.dumps(document, ensure_ascii=False, indent=2) + "\n"


def _jsonable(value: Any) -> Any:
    """Dates as text, because JSON has no dates."""
    if isinstance(value, dict):
        return {key: _jsonable(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_jsonable(item) for item in value]
    return value if value is None or isinstance(value, bool | int | float | str) else value.isoformat()


class _Line(dict[str, Any]):
    """A mapping written on one line."""


class _Items(list[Any]):
    """A list written on one line."""


class _Dumper(yaml.CSafeDumper):
    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - the library calls it with each value
        return True  # `parse` refuses anchors


_Dumper.add_representer(_Line, lambda dumper, line: dumper.represent_mapping("tag:yaml.org,2002:map", line, True))
_Dumper.add_representer(_Items, lambda dumper, items: dumper.represent_sequence("tag:yaml.org,2002:seq", items, True))


def _stated(part: type[Part], entries: Mapping[str, Any]) -> dict[str, Any]:
    """The entries that differ from the part's defaults."""
    defaults = _defaults(part)
    return {key: value for key, value in entries.items() if value != defaults[key]}


@cache
def _defaults(part: type[Part]) -> dict[str, Any]:
    return {field.alias or name: field.default for name, field in part.model_fields.items()}


def _practice(practice: Practice) -> dict[str, Any]:
    system = dict(practice.scheduling_system)
    return _stated(
        PracticePart,
        {
            "slug": practice.slug,
            "name": practice.name,
            "timeZone": practice.time_zone,
            "phone": practice.phone,
            "minimumNoticeMinutes": practice.minimum_notice_minutes,
            "bookingHorizonDays": practice.booking_horizon_days,
            "slotIntervalMinutes": practice.slot_interval_minutes,
            "schedulingSystem": None if system == {"kind": "native"} else system,
            "sandbox": practice.sandbox,
        },
    )


def _location(location: Location) -> dict[str, Any]:
    return _stated(
        LocationPart,
        {
            "id": location.id,
            "name": location.name,
            "aliases": _Items(location.aliases),
            # Always written: a location without a zone keeps the stored zone on import.
            "timeZone": location.time_zone,
            "phone": location.phone,
            "address": None if location.address is None else _address(location.address),
            "closures": [
                _Line(_stated(ClosurePart, {"from": row.first, "to": row.last, "reason": row.reason}))
                for row in location.closures
            ],
        },
    )


def _address(address: Mapping[str, str]) -> _Line:
    return _Line({key: address[key] for key in _defaults(AddressPart) if key in address})


def _provider(provider: Provider) -> dict[str, Any]:
    return _stated(
        ProviderPart,
        {
            "id": provider.id,
            "name": provider.name,
            "aliases": _Items(provider.aliases),
            "specialty": provider.specialty,
            "acceptsNewPatients": provider.accepts_new_patients,
            "capacity": provider.capacity,
            "procedures": None if provider.procedure_ids is None else _Items(sorted(provider.procedure_ids)),
            "hours": [_Line(_hours(row)) for row in provider.hours],
            "timeOff": [
                _Line(
                    _stated(
                        TimeOffPart,
                        {"from": _local_time(row.starts), "to": _local_time(row.ends), "reason": row.reason},
                    )
                )
                for row in provider.time_off
            ],
        },
    )


def _hours(hours: OpeningHours) -> dict[str, Any]:
    return _stated(
        HoursPart,
        {
            "location": hours.location_id,
            "days": _Items(DAYS[day] for day in sorted(hours.days)),
            "from": _clock(hours.opens),
            "to": _clock(hours.closes),
            "effectiveFrom": hours.effective_from,
            "effectiveTo": hours.effective_to,
        },
    )


def _clock(minutes: int) -> str:
    return f"{minutes // 60:02}:{minutes % 60:02}"


def _local_time(moment: datetime) -> str:
    return moment.isoformat(timespec="minutes")


def _visit_type(visit_type: VisitType) -> dict[str, Any]:
    return _stated(
        VisitTypePart,
        {
            "id": visit_type.id,
            "name": visit_type.name,
            "aliases": _Items(visit_type.aliases),
            "description": visit_type.description,
            "patientKind": visit_type.patient_kind,
            "procedures": [_Line(_procedure(row)) for row in visit_type.procedures if row.active],
        },
    )


def _procedure(procedure: Procedure) -> dict[str, Any]:
    return _stated(
        ProcedurePart,
        {
            "id": procedure.id,
            "name": procedure.name,
            "aliases": _Items(procedure.aliases),
            "description": procedure.description,
            "durationMinutes": procedure.duration_minutes,
            "bufferAfterMinutes": procedure.buffer_after_minutes,
        },
    )


def _patient(patient: PatientRecord) -> dict[str, Any]:
    return _stated(
        PatientPart,
        {
            "number": patient.number,
            "firstName": patient.first_name,
            "lastName": patient.last_name,
            "dob": patient.dob,
            "phone": patient.phone,
            "email": patient.email,
            "seen": patient.seen,
        },
    )
