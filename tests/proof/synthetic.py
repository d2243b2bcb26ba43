"""Histories of any length without a service: a practice in memory answers, each call at one moment while it runs."""

import random
from collections.abc import Sequence
from functools import cache
from typing import Any

from frontdesk.features.holds.operations import MAX_HOLDS
from tests.proof import lanes, model
from tests.proof.lanes import Expiry, When
from tests.proof.practices import CAPACITY, CLOSES, DAY_CELLS, OPENS, PROCEDURES, VISIT_TYPE, date_of, time_of
from tests.proof.recorder import NEVER, History, Op, Person

_CLIENT = "fd_synthetic"
_HOLDERS = 100  # clients, beside the one that does everything else
_FIRST_DAY = 21_000 * DAY_CELLS
_DAYS = 20
_PATIENTS = 400
_EVERY = 1_000_000  # nanoseconds between two calls
_MAX_NANOSECONDS = 8_000_000
_NOW = When(0, 0)  # nothing expires


@cache
def _item(provider: int, start: int, procedure: int) -> dict[str, Any]:
    slot = f"slt_{provider}_{start}_{procedure}"
    return {"id": slot, "start": time_of(start), "providerId": provider, "procedureId": procedure}


class Synthetic:
    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.history = History()
        self.now = 0
        self.days: dict[tuple[int, int], lanes.Day] = {}
        self.diaries: dict[str, model.Diary] = {}
        self.records: dict[str, model.Record] = {}
        self.appointments: dict[str, model.Appointment] = {}
        self.live: list[str] = []
        self.holds: list[tuple[str, str, tuple[int, int, int]]] = []  # client, hold, its provider, start and procedure
        for number in range(_PATIENTS):
            patient = f"pat_{number}"
            person = Person("First", f"Last {number}", "1980-01-01", f"555{number:07}")
            self.history.persons["north", patient] = person
            self.records[patient] = model.Record(patient, person.first, person.phone, None)
            self.diaries[patient] = frozenset()

    def generate(self, operations: int) -> History:
        actions = (
            (self.search, 40), (self.look_at_slot, 40), (self.book, 50), (self.cancel, 40), (self.confirm, 10),
            (self.read_appointment, 50), (self.read_patient, 20), (self.update_patient, 10), (self.resend, 10),
            (self.hold, 2), (self.use_hold, 2),
        )  # fmt: skip
        acts = [act for act, weight in actions for _ in range(weight)]
        for day in range(_DAYS):  # a call names only slots that a search has shown
            for provider in CAPACITY:
                for procedure in PROCEDURES:
                    self._search(provider, _FIRST_DAY + day * DAY_CELLS, procedure)
        while len(self.history.ops) < operations:
            self.chance.choice(acts)()
        return self.history

    def _op(
        self,
        name: str,
        given: dict[str, Any],
        status: int,
        body: dict[str, Any],
        key: str | None = None,
        client: str = _CLIENT,
    ) -> None:
        self.now += _EVERY
        invoked = self.now - 1 - int(self.chance.random() * _MAX_NANOSECONDS)
        answered = self.now + 1 + int(self.chance.random() * _MAX_NANOSECONDS)
        self.history.ops.append(Op("north", client, "rest", name, given, invoked, answered, status, body, None, key))

    def _place(self) -> tuple[int, int, int]:
        """A provider, a start and a procedure."""
        procedure = self.chance.choice(list(PROCEDURES))
        cell = self.chance.randrange(OPENS, CLOSES - PROCEDURES[procedure].cells + 1)
        day = self.chance.randrange(_DAYS)
        return self.chance.choice(list(CAPACITY)), _FIRST_DAY + day * DAY_CELLS + cell, procedure

    def _day(self, provider: int, start: int) -> lanes.Day:
        return self.days.get((provider, start // DAY_CELLS), lanes.empty_day(CAPACITY[provider]))

    def _busy(self, provider: int, start: int) -> Sequence[int]:
        return lanes.most_busy(self._day(provider, start), _NOW)

    def search(self) -> None:
        self._search(*self._place())

    def _search(self, provider: int, start: int, procedure: int) -> None:
        first = start - start % DAY_CELLS
        open_starts = lanes.open_starts(self._busy(provider, start), PROCEDURES[procedure])
        items = [_item(provider, first + cell, procedure) for cell in range(OPENS, CLOSES) if open_starts >> cell & 1]
        given = {"providerId": provider, "visitTypeId": VISIT_TYPE, "procedureId": procedure, "from": date_of(start)}
        self._op("search_slots", given, 200, {"items": items, "limit": 50})

    def look_at_slot(self) -> None:
        provider, start, procedure = self._place()
        wanted = lanes.cells(start % DAY_CELLS, PROCEDURES[procedure].busy)
        free = lanes.is_free(self._busy(provider, start), wanted)
        self._op("get_slot", {"slotId": f"slt_{provider}_{start}_{procedure}"}, 200, {"available": free})

    def hold(self) -> None:
        provider, start, procedure = self._place()
        client = f"fd_{self.chance.randrange(_HOLDERS)}"
        hold, given = f"hld_{len(self.history.ops)}", {"slotId": f"slt_{provider}_{start}_{procedure}"}
        wanted = lanes.cells(start % DAY_CELLS, PROCEDURES[procedure].busy)
        after = lanes.begins_hold(hold, wanted, Expiry(NEVER, NEVER), _NOW)(self._day(provider, start))
        if not after:
            self._op("hold_slot", given, 409, {"code": "slot_unavailable"}, client=client)
        elif sum(each[0] == client for each in self.holds) == MAX_HOLDS:
            self._op("hold_slot", given, 409, {"code": "conflict"}, client=client)
        else:
            self.days[provider, start // DAY_CELLS] = after[0]
            self.holds.append((client, hold, (provider, start, procedure)))
            body = {"holdId": hold, "heldUntil": "2100-01-01T00:00:00Z"}
            self._op("hold_slot", given, 201, body, client=client)

    def use_hold(self) -> None:
        """Reads a hold, and books or releases it."""
        if not self.holds:
            return
        number = self.chance.randrange(len(self.holds))
        client, hold, place = self.holds[number]
        provider, start, procedure = place
        self._op("get_hold", {"holdId": hold}, 200, {"slotId": f"slt_{provider}_{start}_{procedure}"}, client=client)
        if self.chance.random() < 0.5:
            if self._book(place, hold, client):
                del self.holds[number]
        else:
            day = provider, start // DAY_CELLS
            self.days[day] = lanes.ends_hold(hold, _NOW)(self.days[day])
            self._op("release_hold", {"holdId": hold}, 200, {"holdId": hold}, client=client)
            del self.holds[number]

    def book(self) -> None:
        self._book(self._place())

    def _book(self, place: tuple[int, int, int], hold: str | None = None, client: str = _CLIENT) -> bool:
        provider, start, procedure = place
        patient, appointment = f"pat_{self.chance.randrange(_PATIENTS)}", f"apt_{len(self.history.ops)}"
        time = {"slotId": f"slt_{provider}_{start}_{procedure}"} if hold is None else {"holdId": hold}
        given = {"patientId": patient, **time}
        wanted = lanes.cells(start % DAY_CELLS, PROCEDURES[procedure].busy)
        end = start + PROCEDURES[procedure].cells
        after = lanes.occupies(appointment, wanted, _NOW, hold)(self._day(provider, start))
        diary = model.attends(appointment, start, end)(self.diaries[patient])
        if not after:
            self._op("book_appointment", given, 409, {"code": "slot_unavailable"}, client=client)
        elif diary is None:
            self._op("book_appointment", given, 422, {"code": "validation"}, client=client)
        else:
            self.days[provider, start // DAY_CELLS], self.diaries[patient] = after[0], diary
            self.appointments[appointment] = model.Appointment(patient, provider, start, procedure, "booked")
            self.live.append(appointment)
            self._op(
                "book_appointment", given, 201, {"appointmentId": appointment}, key=f"key {appointment}", client=client
            )
            return True
        return False

    def cancel(self) -> None:
        if len(self.live) > 100:
            appointment = self.live.pop(self.chance.randrange(len(self.live)))
            booked = self.appointments[appointment]
            day = (booked.provider, booked.start // DAY_CELLS)
            self.days[day] = lanes.without(self.days[day], appointment)
            self.diaries[booked.patient] = model.no_longer_attends(appointment)(self.diaries[booked.patient])
            self.appointments[appointment] = booked._replace(status="cancelled")
            body = {"appointmentId": appointment, "status": "cancelled"}
            self._op("cancel_appointment", {"appointmentId": appointment}, 200, body)

    def confirm(self) -> None:
        if self.live:
            appointment = self.chance.choice(self.live)
            self.appointments[appointment] = self.appointments[appointment]._replace(status="confirmed")
            body = {"appointmentId": appointment, "status": "confirmed"}
            self._op("confirm_attendance", {"appointmentId": appointment}, 200, body)

    def read_appointment(self) -> None:
        if self.live:
            appointment = self.chance.choice(self.live)
            shown = self.appointments[appointment]
            body = {
                "id": appointment, "patientId": shown.patient, "providerId": shown.provider, "status": shown.status,
                "procedureId": shown.procedure, "start": time_of(shown.start),
            }  # fmt: skip
            self._op("get_appointment", {"appointmentId": appointment}, 200, body)

    def read_patient(self) -> None:
        record = self.records[f"pat_{self.chance.randrange(_PATIENTS)}"]
        body = {"id": record.patient, "firstName": record.first, "phone": record.phone, "email": record.email}
        self._op("get_patient", {"patientId": record.patient}, 200, body)

    def update_patient(self) -> None:
        patient, email = f"pat_{self.chance.randrange(_PATIENTS)}", f"{len(self.history.ops)}@example.com"
        self.records[patient] = self.records[patient]._replace(email=email)
        self._op("update_patient", {"patientId": patient, "email": email}, 200, {"patientId": patient})

    def resend(self) -> None:
        """The stored result of a booking, asked for again."""
        before = self.history.ops[-self.chance.randrange(1, 100) :]
        booked = next((op for op in before if op.key is not None and op.succeeded), None)
        if booked is not None:
            self._op(
                booked.name, dict(booked.given), booked.status, dict(booked.body), key=booked.key, client=booked.client
            )
