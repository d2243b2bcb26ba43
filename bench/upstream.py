"""A FHIR server with scheduling operations: the time that a one-call booking spends there, against its `$book` alone.

Runs where such a server is given: FRONTDESK_BENCH_FHIR_FILE names a practice file, and the environment holds the
credentials that it names. It must be a server for tests: a patient and cancelled appointments are left there.
"""

import os
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
from measuring import Progress, Row, Sizes, median, ratios
from service import Service

from frontdesk.app import build_app, build_service
from frontdesk.domain.directory import Directory
from frontdesk.practice_file import parse
from frontdesk.settings import Settings
from frontdesk.store.database import Database
from frontdesk.store.practices import import_practice
from frontdesk.systems.fhir.transport.request_sender import Request, RequestSender

FILE = "FRONTDESK_BENCH_FHIR_FILE"
_FIRST_DAY, _LAST_DAY = timedelta(days=14), timedelta(days=28)
_PERSON = {"firstName": "Frontdesk", "lastName": "Bench", "dob": "1900-01-01", "phone": "+1 555 010 0100"}


class Spent:
    """Seconds of all requests to the server, and of `$book` among them."""

    def __init__(self) -> None:
        self.all = self.book = 0.0
        self._send = RequestSender.send

    def __enter__(self) -> "Spent":
        async def send(sender: RequestSender, deadline: Any, request: Request) -> Any:
            began = time.perf_counter()
            try:
                return await self._send(sender, deadline, request)
            finally:
                seconds = time.perf_counter() - began
                self.all += seconds
                self.book += seconds if request.name == "Appointment/$book" else 0.0

        RequestSender.send = send  # type: ignore[method-assign]
        return self

    def __exit__(self, *_: object) -> None:
        RequestSender.send = self._send  # type: ignore[method-assign]


def bookings(folder: Path, sizes: Sizes, progress: Progress) -> list[Row]:
    path = os.environ.get(FILE)
    if not path:
        print(f"upstream: not measured, because {FILE} names no practice file", file=sys.stderr)
        return []
    text = Path(path).read_text()
    service = Service(folder)
    try:
        service.start()
        practice = parse(text)
        service.with_keys(lambda database, _: import_practice(database, practice, datetime.now(UTC)))
        [token] = service.tokens([practice.directory.practice.slug], "integration")
        taken = service.with_keys(
            lambda database, _: _measured(folder, database, practice.directory, token, sizes, progress)
        )
    finally:
        service.stop()
    value, low, high = ratios(taken["at the server"], taken["$book"])
    figures = ", ".join(f"{name} {median(each) * 1000:.0f} ms" for name, each in taken.items())
    title = "one-call booking at a FHIR server, time spent there, against its $book alone"
    return [Row("upstream booking", title, value, low=low, high=high, figures=figures, details=taken)]


async def _measured(
    folder: Path, database: Database, directory: Directory, token: str, sizes: Sizes, progress: Progress
) -> dict[str, list[float]]:
    """Seconds of each booking."""
    service = build_service(Settings(data_dir=folder, base_url="http://bench"), database)
    await service.ring.load()
    taken: dict[str, list[float]] = {"in all": [], "at the server": [], "$book": []}
    transport = httpx.ASGITransport(app=build_app(service))
    async with httpx.AsyncClient(transport=transport, base_url="http://bench") as caller:
        caller.headers["Authorization"] = f"Bearer {token}"
        match = await caller.post("/api/patients/match", json=_PERSON)
        known = match.json()["items"] if match.status_code == 200 else []  # of an earlier run
        patient = known[0]["id"] if known else (await _ok(caller, "POST", "/api/patients", _PERSON))["patientId"]
        slots = await _slots(caller, directory)
        for number, slot in enumerate(slots[: sizes.rounds + 1]):
            progress.at(f"booking {number}")
            began = time.perf_counter()
            with Spent() as spent:
                body = {"patientId": patient, "slotId": slot["id"]}
                booked = await _ok(caller, "POST", "/api/appointments", body)
            if number:  # the first one reads the capabilities and the schedules
                taken["in all"].append(time.perf_counter() - began)
                taken["at the server"].append(spent.all)
                taken["$book"].append(spent.book)
            await _ok(caller, "POST", f"/api/appointments/{booked['appointmentId']}/cancel", {})
    await service.fhir.close()
    return taken


async def _slots(caller: httpx.AsyncClient, directory: Directory) -> list[dict[str, Any]]:
    """Open times of the first provider and service that has some, for a patient whom the practice has not seen."""
    today = datetime.now(UTC).date()
    for visit_type in directory.visit_types.values():
        for procedure in visit_type.procedures if visit_type.patient_kind != "existing" else ():
            for provider in directory.providers.values():
                query = {
                    "providerId": provider.id,
                    "locationId": min(provider.location_ids),
                    "visitTypeId": visit_type.id,
                    "procedureId": procedure.id,
                    "from": str(today + _FIRST_DAY),
                    "to": str(today + _LAST_DAY),
                    "limit": 50,
                }
                answer = await caller.get("/api/slots", params=query)
                if answer.status_code == 200 and answer.json()["items"]:
                    return list(answer.json()["items"])
    raise RuntimeError("the server has no open time in two weeks for a service that new patients may have")


async def _ok(caller: httpx.AsyncClient, method: str, path: str, body: dict[str, Any]) -> Any:
    answer = await caller.request(method, path, json=body)
    if answer.status_code not in (200, 201):
        raise RuntimeError(f"{method} {path} was answered with {answer.status_code} {answer.json().get('code')}")
    return answer.json()
