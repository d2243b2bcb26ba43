"""Every page, asked for by one practice's admin with another practice's ids: nothing of the other practice shows."""

import re

import httpx
import pytest

from frontdesk.console.routes import pages
from tests.console.signing_in import TEST_STAFF, signed_in
from tests.console.walking import NOBODYS, address_of
from tests.security.two_practices import Side, victim
from tests.support.shared_database import world_of_a_module
from tests.support.world import World

WITH_IDS = [page for page in pages() if "{" in page.path and "{ending}" not in page.path]
# What differs from answer to answer for everyone: request ids and fresh keys.
PASSING = re.compile(r"[0-9a-f]{32}|[A-Za-z0-9_-]{32}")
_PROPOSAL = """
INSERT INTO intent (practice_id, intent_id, client_id, operation, fingerprint, state, approval, proposal,
    created_at, expires_at, keep_until)
VALUES ($1, $2, 'fd_x', 'book_appointment', '', 'challenged', 'pending', '{"readBack": {}, "requestId": "0"}',
    $3::timestamptz, $3 + interval '1 hour', $3 + interval '1 hour')
"""


world = world_of_a_module


@pytest.fixture(scope="module")
async def theirs(world: World) -> Side:
    return await victim(world)


@pytest.fixture(scope="module")
async def admin(world: World) -> httpx.AsyncClient:
    return await signed_in(world, role="admin")


@pytest.fixture(scope="module")
async def ids(world: World, theirs: Side) -> dict[str, str]:
    """The other practice's own, in the addresses of pages."""
    practice_id = await world.database.fetchval("SELECT practice_id FROM practice WHERE slug = 'quixotic'")
    other = await signed_in(world, practice="quixotic", name="Zachariah Vexford")
    away = {"who": f"provider-{theirs.ids['providerId']}", "from": "2026-12-01", "do": "start"}
    approval_id = "1" * 64
    async with world.database.transaction(practice_id) as connection:
        await connection.execute(_PROPOSAL, practice_id, bytes.fromhex(approval_id), world.clock())
    return {
        "approval_id": approval_id,
        "absence_id": (await other.post("/console/away", data=away)).headers["Location"].rpartition("/")[2],
        "appointment_id": theirs.ids["appointmentId"],
        "patient_id": theirs.ids["patientId"],
        "staff_id": other.headers[TEST_STAFF],
        "client_id": theirs.agent.headers["X-Test-Client"],
        "endpoint_id": f"whk_{practice_id}_{'0' * 16}",
        "feed_id": f"feed_{practice_id}_{'0' * 16}",
        "passkey_id": await passkey(world, other.headers[TEST_STAFF]),
        "number": await world.database.fetchval(
            "SELECT left(encode(digest, 'hex'), 8) FROM staff_session WHERE staff_id = $1", other.headers[TEST_STAFF]
        ),
    }


async def passkey(world: World, staff_id: str) -> str:
    passkey_id = "pk_" + "1" * 20
    await world.database.write(
        "INSERT INTO staff_passkey VALUES ($1, $2, $3, '', 0, 'Tablet', $4)",
        passkey_id,
        staff_id,
        b"theirs",
        world.clock(),
    )
    return passkey_id


def outcome_of(answer: httpx.Response, given: dict[str, str]) -> tuple[int, str]:
    text = answer.text
    for value in given.values():
        text = text.replace(value, "ID")
    return answer.status_code, PASSING.sub("-", text)


async def test_no_page_without_an_id_shows_anything_of_another_practice(
    admin: httpx.AsyncClient, theirs: Side, ids: dict[str, str]
) -> None:
    """First of all: what the attempts below ask for is in the audit trail of those who asked."""
    for page in pages():
        if page.method == "GET" and "{" not in page.path and not page.path.startswith("/live"):
            answer = await admin.get(address_of(page))
            shown = [mark for mark in (*theirs.marks, *ids.values()) if mark in answer.text]
            assert shown == [], page.path


async def test_another_practices_id_is_answered_as_one_that_nobody_has(
    admin: httpx.AsyncClient, theirs: Side, ids: dict[str, str]
) -> None:
    assert len(WITH_IDS) > 10
    for page in WITH_IDS:
        address, unknown = address_of(page, {**NOBODYS, **ids}), address_of(page)
        assert address != unknown
        answer = await admin.request(page.method, address)
        assert answer.status_code == 404 or (page.method == "POST" and 400 <= answer.status_code < 500), page.path
        nobodys = outcome_of(await admin.request(page.method, unknown), dict(NOBODYS))
        assert outcome_of(answer, {**NOBODYS, **ids}) == nobodys, page.path
        marks = [mark for mark in theirs.marks if mark in answer.text and mark not in ids.values()]
        assert marks == [], page.path


async def test_every_form_of_another_practices_record_leaves_it_alone(
    world: World, admin: httpx.AsyncClient, theirs: Side, ids: dict[str, str]
) -> None:
    """With fields that would do something at home."""
    before = await fingerprint(world)
    filled = {
        "name": "Mallory", "role": "admin", "change": "remove", "status": "arrived", "reason": "because",
        "key": "k" * 32, "firstName": "Mallory", "lastName": "Mallory", "phone": "+1 555 000 0001", "perMinute": "1",
        "quota": "1", "slotId": theirs.ids["slotId"], "slot": theirs.ids["slotId"],
    }  # fmt: skip
    for page in WITH_IDS:
        if page.method == "POST":
            answer = await admin.post(address_of(page, {**NOBODYS, **ids}), data=filled)
            assert 400 <= answer.status_code < 500, page.path
    assert await fingerprint(world) == before


async def fingerprint(world: World) -> str:
    practice_id = await world.database.fetchval("SELECT practice_id FROM practice WHERE slug = 'quixotic'")
    found = ""
    async with world.database.transaction(practice_id) as connection:
        for table in ("appointment", "patient", "client", "staff", "staff_link", "staff_passkey", "client_secret"):
            own = (
                ""
                if table in ("staff_link", "staff_passkey", "client_secret")
                else f"WHERE practice_id = {practice_id}"
            )
            found += await connection.fetchval(
                f"SELECT md5(string_agg(t::text, '|' ORDER BY t::text)) FROM {table} t {own}"
            )
    return found
