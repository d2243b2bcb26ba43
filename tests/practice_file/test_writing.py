"""Writing: what is written reads back the same, in a fixed order, without defaults."""

from dataclasses import replace
from datetime import date, datetime
from pathlib import Path
from typing import get_args

import yaml
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.domain.consent import Demand
from frontdesk.domain.directory import (
    Closure,
    DateFormat,
    Directory,
    Location,
    OpeningHours,
    Practice,
    Procedure,
    Provider,
    TimeFormat,
    TimeOff,
    VisitType,
)
from frontdesk.domain.names import has_letter
from frontdesk.domain.patients import PhoneMatch
from frontdesk.domain.text import character_error
from frontdesk.practice_file import PatientRecord, PracticeFile, dump, parse
from frontdesk.practice_file.fields import MAX_PATIENT_NUMBER
from frontdesk.practice_file.model import FEATURE_PARTS, ConsentPart
from tests.practice_file.reference import schema_violations
from tests.support.properties import examples

EXAMPLE = Path(__file__).with_name("example.yaml").read_text(encoding="utf-8")

ids = st.integers(1, 2**31 - 1)
days = st.dates(date(1900, 1, 1))
moments = st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1)).map(lambda t: t.replace(second=0, microsecond=0))
awkward = st.sampled_from(
    ["NO", "null", "~", "09:00", "1985-12-10", "1e5", "0x1F", "1_0", "2.5", "true", "- a", "a: b"]
)
awkward |= st.sampled_from(
    ["#x", "x #y", "&a", "*a", "!a", "'", '"', "{a", "[a]", "?", "%a", "@a", "=", " a ", "a\u3000b"]
)
zones = st.sampled_from(["America/New_York", "America/Chicago", "Europe/Oslo", "UTC"])
phones = st.sampled_from(["+1 555 010 0199", "5550100199", "0150 1234567", "1.555.0100"])


def written(text: str) -> bool:
    return bool(text.strip()) and character_error(text) is None


names = awkward | st.text(min_size=1, max_size=100).filter(written)
aliases = st.lists(names, max_size=2).map(tuple)
systems = st.just({"kind": "native"})


def ordered(moments: st.SearchStrategy[date]) -> st.SearchStrategy[list[date]]:
    return st.lists(moments, min_size=2, max_size=2, unique=True).map(sorted)


def by_id(records: st.SearchStrategy) -> st.SearchStrategy:
    return st.lists(records, max_size=2).map(lambda found: {record.id: record for record in found})


@st.composite
def hours(draw: st.DrawFn, locations: list[int]) -> OpeningHours:
    opens = draw(st.integers(0, 1439))
    first, last = draw(st.just((None, None)) | ordered(days))
    week = draw(st.frozensets(st.integers(0, 6), min_size=1))
    return OpeningHours(draw(st.sampled_from(locations)), week, opens, draw(st.integers(opens + 1, 1440)), first, last)


addresses = st.fixed_dictionaries(
    {"line1": names, "city": names, "state": names, "postalCode": st.just("02110") | names, "country": names},
    optional={"line2": names},
)
closures = st.builds(lambda ends, reason: Closure(*ends, reason), ordered(days), st.none() | names)
absences = st.builds(lambda ends, reason: TimeOff(*ends, reason), ordered(moments), st.none() | names)
locations = st.builds(
    Location,
    id=ids,
    name=names,
    time_zone=zones,
    aliases=aliases,
    phone=st.none() | phones,
    address=st.none() | addresses,
    closures=st.lists(closures, max_size=2).map(tuple),
    active=st.just(True),
)
procedures = st.builds(
    Procedure,
    id=ids,
    name=names,
    duration_minutes=st.integers(1, 1440),
    aliases=aliases,
    description=st.none() | names | st.just("Several\nlines\n"),
    buffer_after_minutes=st.integers(0, 1440),
    active=st.just(True),
)
visit_types = st.builds(
    VisitType,
    id=ids,
    name=names,
    patient_kind=st.sampled_from(["new", "existing", "any"]),
    aliases=aliases,
    description=st.none() | names,
    procedures=st.lists(procedures, max_size=2, unique_by=lambda procedure: procedure.id).map(tuple),
    active=st.just(True),
)
practices = st.builds(
    Practice,
    slug=st.from_regex(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?", fullmatch=True),
    name=names,
    time_zone=zones,
    phone=st.none() | phones,
    minimum_notice_minutes=st.integers(0, 525_600),
    booking_horizon_days=st.integers(1, 730),
    slot_interval_minutes=st.integers(1, 1440),
    scheduling_system=systems,
    sandbox=st.booleans(),
    patients_per_hour=st.integers(0, 1_000_000),
    patients_per_day=st.integers(0, 1_000_000),
    match_misses=st.integers(0, 100),
    known_patients_only=st.booleans(),
    writes_per_hour=st.integers(0, 1_000_000),
    upcoming_per_patient=st.integers(0, 1_000),
    phone_match=st.sampled_from(get_args(PhoneMatch)),
    consent=st.dictionaries(st.sampled_from([*ConsentPart.model_fields]), st.sampled_from(get_args(Demand))),
    assistants=st.booleans(),
    time_format=st.sampled_from(get_args(TimeFormat)),
    date_format=st.sampled_from(get_args(DateFormat)),
    features=st.dictionaries(st.sampled_from([*FEATURE_PARTS]), st.just({"enabled": False})),
)
patients = st.builds(
    PatientRecord,
    number=st.integers(1, MAX_PATIENT_NUMBER),
    first_name=names.filter(has_letter),
    last_name=names.filter(has_letter),
    dob=days,
    phone=phones,
    email=st.none() | st.emails(),
    seen=st.booleans(),
)


@st.composite
def files(draw: st.DrawFn) -> PracticeFile:
    places, kinds = draw(by_id(locations)), draw(by_id(visit_types))
    offered = [procedure.id for kind in kinds.values() for procedure in kind.procedures]
    providers = st.builds(
        Provider,
        id=ids,
        name=names,
        aliases=aliases,
        specialty=st.none() | names,
        accepts_new_patients=st.booleans(),
        capacity=st.integers(1, 100),
        procedure_ids=st.none() | st.frozensets(st.sampled_from(offered) if offered else st.nothing()),
        hours=st.lists(hours(list(places)), max_size=2).map(tuple) if places else st.just(()),
        time_off=st.lists(absences, max_size=2).map(tuple),
        active=st.just(True),
    )
    directory = Directory(draw(practices), places, draw(by_id(providers)), kinds)
    return PracticeFile(directory, tuple(draw(st.lists(patients, max_size=2, unique_by=lambda p: p.number))))


@examples(20)
@given(files())
def test_what_is_written_reads_back_the_same(file: PracticeFile) -> None:
    text = dump(file)
    assert parse(text) == file
    assert dump(parse(text)) == text
    assert schema_violations(text) == []


def test_the_example_survives_the_round_trip() -> None:
    file = parse(EXAMPLE)
    assert parse(dump(file)) == file
    assert dump(parse(dump(file))) == dump(file)


def test_records_that_take_a_line_are_written_on_one() -> None:
    lines = dump(parse(EXAMPLE)).splitlines()
    assert "  - {location: 1, days: [mon, tue, wed, thu, fri], from: '09:00', to: '12:00'}" in lines
    assert (
        "- {number: 1, firstName: Ada, lastName: Lovelace, dob: 1985-12-10, phone: +1 555 010 0199, seen: true}"
        in lines
    )


def test_defaults_are_left_out() -> None:
    text = """practice:
  slug: demo
  name: Demo
  timeZone: UTC
providers:
- id: 10
  name: Dr. Chen
visitTypes:
- id: 20
  name: Exam
  procedures:
  - {id: 100, name: Exam, durationMinutes: 15}
"""
    assert dump(parse(text)) == text


def test_a_provider_of_no_procedure_is_not_a_provider_of_all() -> None:
    practice = "practice: {slug: demo, name: Demo, timeZone: UTC}\n"
    file = parse(practice + "providers: [{id: 10, name: A, procedures: []}, {id: 11, name: B}]")
    again = parse(dump(file)).directory.providers
    assert (again[10].procedure_ids, again[11].procedure_ids) == (frozenset(), None)


def test_order_does_not_depend_on_the_order_of_the_directory() -> None:
    directory = parse(EXAMPLE).directory
    shuffled = replace(directory, visit_types=dict(reversed(directory.visit_types.items())))
    assert dump(PracticeFile(shuffled)) == dump(PracticeFile(directory))


def test_inactive_records_are_left_out() -> None:
    directory = parse(EXAMPLE).directory
    chen, exam = directory.providers[10], directory.visit_types[20]
    pruned = replace(
        directory,
        providers={10: replace(chen, active=False), 11: Provider(11, "Dr. Diaz")},
        visit_types={
            20: replace(exam, procedures=(replace(exam.procedures[0], active=False), Procedure(102, "Scan", 20))),
            21: replace(directory.visit_types[21], active=False),
        },
    )
    again = parse(dump(PracticeFile(pruned))).directory
    assert list(again.providers) == [11]
    assert [(kind.id, [p.id for p in kind.procedures]) for kind in again.visit_types.values()] == [(20, [102])]


def test_a_zone_written_out_wins_over_the_stored_one() -> None:
    file = parse("practice: {slug: demo, name: Demo, timeZone: UTC}\nlocations: [{id: 1, name: A}]")
    stored = parse(
        "practice: {slug: demo, name: Demo, timeZone: UTC}\nlocations: [{id: 1, name: A, timeZone: Asia/Tokyo}]"
    )
    assert parse(dump(file), known=stored.directory) == file


def test_other_yaml_readers_see_text_where_text_was_meant() -> None:
    address = "{line1: 1 Main Street, city: Oslo, state: 0x1F, postalCode: 02110, country: NO}"
    practice = "practice: {slug: demo, name: Demo, timeZone: UTC}\n"
    text = dump(parse(practice + f"locations: [{{id: 1, name: 09:00, address: {address}}}]"))
    location = yaml.safe_load(text)["locations"][0]
    assert location["name"] == "09:00"
    assert (location["address"]["state"], location["address"]["postalCode"]) == ("0x1F", "02110")
    assert location["address"]["country"] == "NO"
