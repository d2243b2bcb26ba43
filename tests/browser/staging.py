"""A busy day for pictures: invented patients booked by named clients and by the desk, and a day of invented traffic."""

import asyncio
import contextlib
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta
from random import Random

import asyncpg
from frontdesk_client import Frontdesk, FrontdeskError

from frontdesk.store.embedded.server import OWNER_ROLE, EmbeddedPostgres
from tests.browser.browsing import Office, command
from tests.clients.running_desk import ALL_PATIENTS, Credentials

PATIENTS = """
    Amelia Stone, Bruno Keller, Clara Duarte, Dylan Frost, Elif Kaya, Felix Ivanov, Greta Lund, Hugo Marsh, Iris Okoye,
    Jonas Weber, Keira Walsh, Leo Tanaka, Maya Rahman, Nils Berg, Olga Petrova, Pablo Serrano
"""
# Provider and what is booked with them: a visit type for new patients, or the nurse's.
VISITS = ((10, 20, 101), (11, 20, 100), (13, 23, 107), (10, 20, 100), (11, 20, 101), (13, 23, 106))
OUTCOMES = (
    ("search_slots", 200, "", 40),
    ("match_patient", 200, "", 14),
    ("get_slot", 200, "", 16),
    ("book_appointment", 428, "confirmation_required", 9),
    ("book_appointment", 201, "", 8),
    ("match_patient", 404, "not_found", 2),
    ("book_appointment", 409, "slot_unavailable", 1),
    ("search_slots", 422, "validation", 1),
)


def stage(place: Office) -> str:
    """Fills the next day on which people work; returns it."""
    chance = Random("pictures")
    clients = [_client(place, name, grant) for name, grant in (("Voice agent", "agent"), ("Website", "integration"))]
    names = [name.split() for name in PATIENTS.replace("\n", " ").split(",")]
    day = place.agent.slots(limit=1)[0].day
    with contextlib.ExitStack() as opened:
        apis = [opened.enter_context(client.client(place.desk.url)) for client in clients]
        for number, (first, last) in enumerate(names):
            api = apis[number % 3 == 2]
            _book(api, first, last, day, VISITS[number % len(VISITS)], chance)
    with ThreadPoolExecutor(1) as beside:  # the browser's loop runs in this thread
        beside.submit(asyncio.run, _traffic(place, [client.client_id for client in clients], chance)).result()
    return day


def _client(place: Office, name: str, grant: str) -> Credentials:
    made = command(
        place.desk,
        "client",
        "add",
        "--practice",
        "demo",
        "--name",
        name,
        "--grant",
        grant,
        "--scope",
        "all",
        *ALL_PATIENTS,
    )
    return Credentials(made["clientId"], made["clientSecret"])


def _book(api: Frontdesk, first: str, last: str, day: str, visit: tuple[int, int, int], chance: Random) -> None:
    provider, visit_type, procedure = visit
    person = {"phone": f"+1 617 555 01{chance.randrange(100):02}", "dob": date(1960 + chance.randrange(50), 5, 17)}
    patient = api.create_patient(first_name=first, last_name=last, **person).confirm().patient_id
    found = api.search_slots(
        provider_id=provider, location_id=1, visit_type_id=visit_type, procedure_id=procedure, from_=day, to=day
    )
    for slot in chance.sample(found.items, min(3, len(found.items))):
        with contextlib.suppress(FrontdeskError):
            booked = api.book_appointment(patient_id=patient, slot_id=slot.id).confirm()
            if chance.random() < 0.5:
                api.confirm_attendance(appointment_id=booked.appointment_id).confirm()
            return


async def _traffic(place: Office, clients: list[str], chance: Random) -> None:
    postgres = EmbeddedPostgres(place.folder / "data" / "postgres")
    connection = await asyncpg.connect(postgres.dsn(OWNER_ROLE), server_settings={"search_path": "frontdesk, public"})
    practice = await connection.fetchval("SELECT practice_id FROM practice WHERE slug = 'demo'")
    now = datetime.now(UTC).replace(second=0, microsecond=0)
    began = now - timedelta(minutes=now.minute % 5, hours=24)
    rows = []
    for period in range(24 * 12 - 1):
        at = began + timedelta(minutes=5 * period)
        busy = max(0.05, 1 - abs(period - 190) / 110)
        for operation, status, code, weight in OUTCOMES:
            requests = int(weight * busy * chance.uniform(0.4, 1.2))
            if requests:
                rows.append((practice, 5, at, chance.choice(clients), operation, "mcp", status, code, requests))
    await connection.executemany("INSERT INTO request_count VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)", rows)
    await connection.close()
