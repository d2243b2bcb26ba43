"""Writes practice files in a fixed order, without default values."""

import json
from collections.abc import Mapping
from datetime import date, datetime

import yaml

from frontdesk.domain.consent import Demands
from frontdesk.domain.directory import DAYS, Location, Practice, Provider, VisitType
from frontdesk.feature import StoredFeatures
from frontdesk.practice_file.contents import PracticeFile
from frontdesk.practice_file.model import (
    AddressPart,
    ClosurePart,
    ConsentPart,
    FeaturesPart,
    FilePart,
    HoursPart,
    LocationPart,
    PatientPart,
    PracticePart,
    ProcedurePart,
    ProviderPart,
    TimeOffPart,
    VisitTypePart,
)
from frontdesk.practice_file.part import Part


def dump(file: PracticeFile) -> str:
    directory = file.directory
    document = _entries(
        FilePart,
        file,
        practice=_practice(directory.practice),
        locations=[_location(record) for _, record in sorted(directory.locations.items()) if record.active],
        providers=[_provider(record) for _, record in sorted(directory.providers.items()) if record.active],
        visit_types=[_visit_type(record) for _, record in sorted(directory.visit_types.items()) if record.active],
        patients=[_line(PatientPart, record) for record in file.patients],
    )
    # A negative width prevents line wrapping.
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, default_flow_style=False, width=-1)


def dump_json(file: PracticeFile) -> str:
    document = _jsonable(yaml.load(dump(file), yaml.CSafeLoader))
    return json.dumps(document, ensure_ascii=False, indent=2) + "\n"


def _jsonable(value: object) -> object:
    """Dates as text, because JSON has no dates."""
    if isinstance(value, dict):
        return {key: _jsonable(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_jsonable(item) for item in value]
    return value.isoformat() if isinstance(value, date) else value


class _Line(dict[str, object]):
    """A mapping written on one line."""


class _Items(list[object]):
    """A list written on one line."""


class _Dumper(yaml.CSafeDumper):
    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - the library calls it with each value
        return True  # `parse` refuses anchors


_Dumper.add_representer(_Line, lambda dumper, line: dumper.represent_mapping("tag:yaml.org,2002:map", line, True))
_Dumper.add_representer(_Items, lambda dumper, items: dumper.represent_sequence("tag:yaml.org,2002:seq", items, True))


def _entries(part: type[Part], record: object, **converted: object) -> dict[str, object]:
    """The record's values that differ from the part's defaults, by key; tuples are written on one line."""
    entries = {}
    for name, field in part.model_fields.items():
        value = converted[name] if name in converted else getattr(record, name)
        value = _Items(value) if isinstance(value, tuple) else value
        if value != field.default:
            entries[field.alias or name] = value
    return entries


def _line(part: type[Part], record: object, **converted: object) -> _Line:
    return _Line(_entries(part, record, **converted))


def _practice(practice: Practice) -> dict[str, object]:
    system = dict(practice.scheduling_system)
    return _entries(
        PracticePart,
        practice,
        scheduling_system=None if system == {"kind": "native"} else system,
        consent=_consent(practice.consent),
        features=_features(practice.features),
    )


def _features(stored: StoredFeatures) -> dict[str, _Line] | None:
    part = FeaturesPart.model_validate(stored, by_alias=False, by_name=True)
    set_ones = part.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    return {name: _Line(values) for name, values in set_ones.items()} or None


def _consent(demands: Demands) -> _Line | None:
    fields = ConsentPart.model_fields.items()
    return _Line({field.alias or name: demands[name] for name, field in fields if name in demands}) or None


def _location(location: Location) -> dict[str, object]:
    # The zone is always written, because a location without one keeps the stored zone on import.
    return _entries(
        LocationPart,
        location,
        address=None if location.address is None else _address(location.address),
        closures=[_line(ClosurePart, row) for row in location.closures],
    )


def _address(address: Mapping[str, str]) -> _Line:
    keys = AddressPart.keys()
    return _Line({key: address[key] for key in keys if key in address})


def _provider(provider: Provider) -> dict[str, object]:
    return _entries(
        ProviderPart,
        provider,
        procedure_ids=None if provider.procedure_ids is None else _Items(sorted(provider.procedure_ids)),
        hours=[
            _line(
                HoursPart,
                row,
                days=_Items(DAYS[day] for day in sorted(row.days)),
                opens=_clock(row.opens),
                closes=_clock(row.closes),
            )
            for row in provider.hours
        ],
        time_off=[
            _line(TimeOffPart, row, starts=_local_time(row.starts), ends=_local_time(row.ends))
            for row in provider.time_off
        ],
    )


def _clock(minutes: int) -> str:
    return f"{minutes // 60:02}:{minutes % 60:02}"


def _local_time(moment: datetime) -> str:
    return moment.isoformat(timespec="minutes")


def _visit_type(visit_type: VisitType) -> dict[str, object]:
    procedures = [_line(ProcedurePart, row) for row in visit_type.procedures if row.active]
    return _entries(VisitTypePart, visit_type, procedures=procedures)
