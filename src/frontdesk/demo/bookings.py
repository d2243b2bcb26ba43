"""Generates past and future appointments for the demo practice and leaves most of every day free."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from random import Random
from typing import Literal

from frontdesk.demo.practice import ADA
from frontdesk.domain.directory import Directory, OpeningHours, Procedure, Provider, VisitType
from frontdesk.practice_file import PatientRecord, PracticeFile

BookingStatus = Literal["booked", "confirmed", "completed", "cancelled"]

_DAYS_BEFORE, _DAYS_AFTER = 7, 21
_BLOCK = timedelta(hours=2)
_BLOCKS_BOOKED = 0.2  # the share of blocks that have bookings


@dataclass(frozen=True, slots=True)
class DemoBooking:
    patient_number: int
    provider_id: int
    location_id: int
    visit_type_id: int
    procedure_id: int
    start: datetime  # naive, in the location's zone
    status: BookingStatus


@dataclass(frozen=True, slots=True)
class _Block:
    """A part of a provider's day, with at most as many bookings as the provider's capacity."""

    provider: Provider
    location_id: int
    starts: tuple[datetime, ...]  # the grid inside it
    ends: datetime


@dataclass(frozen=True, slots=True)
class _Offer:
    visit_type: VisitType
    procedure: Procedure
    starts: list[datetime]


def demo_bookings(file: PracticeFile, today: date) -> list[DemoBooking]:
    """Bookings from a week before the day to three weeks after it, ordered by local start."""
    random = Random(today.toordinal())  # noqa: S311 - an invented calendar, no secret
    bookings: list[DemoBooking] = []
    for offset in range(-_DAYS_BEFORE, _DAYS_AFTER + 1):
        day = today + timedelta(days=offset)
        bookings += _bookings_of_day(file, day, random, past=day < today)
    return sorted(bookings, key=lambda booking: booking.start)


def _bookings_of_day(file: PracticeFile, day: date, random: Random, *, past: bool) -> Iterator[DemoBooking]:
    # One visit per patient and day avoids overlaps. Patients with past visits count as seen.
    patients = [patient for patient in file.patients if patient != ADA and (patient.seen or not past)]
    statuses: list[BookingStatus] = ["completed", "cancelled"] if past else ["booked", "confirmed", "cancelled"]
    weights = [9, 1] if past else [6, 3, 1]
    blocks = list(_blocks(file.directory, day))
    for block in random.sample(blocks, round(len(blocks) * _BLOCKS_BOOKED)):
        for _ in range(block.provider.capacity):
            patient = random.choice([p for p in patients if p.seen or block.provider.accepts_new_patients])
            offers = _offers(file.directory, block, patient)
            if not offers:
                continue
            patients.remove(patient)
            offer = random.choice(offers)
            yield DemoBooking(
                patient.number,
                block.provider.id,
                block.location_id,
                offer.visit_type.id,
                offer.procedure.id,
                start=random.choice(offer.starts),
                status=random.choices(statuses, weights)[0],
            )


def _blocks(directory: Directory, day: date) -> Iterator[_Block]:
    """The hours of this day, split into blocks, without blocks that overlap time off."""
    step = timedelta(minutes=directory.practice.slot_interval_minutes)
    for provider in directory.providers.values():
        for hours in provider.hours:
            if not _applies(hours, directory, day):
                continue
            midnight = datetime.combine(day, time())
            begins, closes = midnight + timedelta(minutes=hours.opens), midnight + timedelta(minutes=hours.closes)
            while begins < closes:
                ends = min(begins + _BLOCK, closes)
                if not any(off.starts < ends and begins < off.ends for off in provider.time_off):
                    starts = tuple(begins + step * index for index in range((ends - begins) // step))
                    yield _Block(provider, hours.location_id, starts, ends)
                begins = ends


def _applies(hours: OpeningHours, directory: Directory, day: date) -> bool:
    closures = directory.locations[hours.location_id].closures
    return day.weekday() in hours.days and not any(closure.first <= day <= closure.last for closure in closures)


def _offers(directory: Directory, block: _Block, patient: PatientRecord) -> list[_Offer]:
    kinds = ("any", "existing" if patient.seen else "new")
    offers = []
    for visit_type in directory.visit_types.values():
        for procedure in visit_type.procedures:
            if visit_type.patient_kind in kinds and block.provider.performs(procedure.id):
                length = timedelta(minutes=procedure.duration_minutes + procedure.buffer_after_minutes)
                starts = [start for start in block.starts if start + length <= block.ends]
                if starts:
                    offers.append(_Offer(visit_type, procedure, starts))
    return offers
