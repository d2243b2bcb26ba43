"""Consent receipts: what they state, who gets them, and that strangers verify them with the published keys."""

import asyncio
import hashlib
import json
import re
from typing import Any

import asyncpg
import httpx
import jwt
import orjson
import pytest

from frontdesk.access.clients.records import AccessLimits
from frontdesk.access.keys.ring import AUDIT_HEADS, TOKEN_SIGNING
from frontdesk.app import build_service
from frontdesk.audit.trail import seal
from frontdesk.audit.verify import verify_chain
from frontdesk.domain.consent import CONSENTS, Consent
from frontdesk.features.receipts import receipts
from frontdesk.features.receipts.verifying import verify_receipt
from tests.assistants.connecting import connected
from tests.console.desk import records
from tests.console.signing_in import TEST_STAFF
from tests.features.receipts.conftest import WITH_RECEIPTS, issued, listed, published
from tests.features.switching import switch
from tests.support.world import World, book, confirmed, page_through, patient_id, slots

HARBOR = 1
CALL = {"jsonrpc": "2.0", "id": 1}
MCP = {"Accept": "application/json, text/event-stream"}


async def call_tool(client: httpx.AsyncClient, name: str, **arguments: Any) -> dict[str, Any]:
    message = CALL | {"method": "tools/call", "params": {"name": name, "arguments": arguments}}
    framed = (await client.post("/mcp", json=message, headers=MCP)).text
    result: dict[str, Any] = orjson.loads(framed.partition("data: ")[2])["result"]
    return result


async def test_a_receipt_states_what_was_read_back_and_who_says_that_somebody_agreed(
    world: World, agent: httpx.AsyncClient
) -> None:
    ada, slot = await patient_id(agent), (await slots(agent))[0]
    body = {"patientId": ada, "slotId": slot["id"]}
    challenge = (await agent.post("/api/appointments", json=body)).json()
    world.clock.advance(seconds=30)
    executed = await agent.post("/api/appointments", json={**body, "confirmationToken": challenge["confirmationToken"]})
    booked = executed.json()["appointmentId"]
    [found] = await listed(agent, appointmentId=booked)
    about = {"operation": "book_appointment", "outcome": "executed", "appointmentId": booked}
    assert found == {
        "id": found["id"], **about, "executedAt": "2026-11-15T08:00:30Z", "consent": "token", "reportedBy": "client"
    }  # fmt: skip
    stated = verify_receipt(await issued(agent, found["id"]), await published(world))
    assert stated["readBack"] == challenge["readBack"]
    assert stated["iss"] == "http://test"
    assert stated["askedBy"] == {"clientId": agent.headers["X-Test-Client"], "name": "agent of harbor"}
    assert (stated["consent"]["kind"], stated["consent"]["reportedBy"]) == ("token", "client")
    assert "is what the client says" in stated["consent"]["proves"]
    assert json.loads(stated["challenge"]["text"])["at"] == "2026-11-15T08:00:00.000000Z"
    assert stated["challenge"]["intentId"] == hashlib.sha256(challenge["confirmationToken"].encode()).hexdigest()
    record = stated["record"]
    assert (record["practice"], record["operation"], record["outcome"]) == ("harbor", "book_appointment", "executed")
    assert record["subjectIds"] == [booked, ada]
    assert record["requestId"] == executed.headers["X-SVC-TRACE-ID"]
    assert record["at"] == "2026-11-15T08:00:30.000000Z"


async def test_a_library_of_strangers_verifies_a_receipt(world: World, agent: httpx.AsyncClient) -> None:
    await book(agent)
    text = await issued(agent, (await listed(agent))[0]["id"])
    header = jwt.get_unverified_header(text)
    assert header == {"alg": "EdDSA", "kid": header["kid"], "typ": "consent-receipt+jwt"}
    key = jwt.PyJWKSet.from_dict(await published(world))[header["kid"]]
    stated = jwt.decode(text, key, algorithms=["EdDSA"], issuer="http://test", options={"require": ["iss", "iat"]})
    assert stated["record"]["operation"] == "book_appointment"
    for path in ("/api/practice", "/mcp"):
        assert (await world.anonymous().get(path, headers={"Authorization": f"Bearer {text}"})).status_code == 401


async def test_every_write_of_an_agent_has_a_receipt_over_both_doors(world: World, agent: httpx.AsyncClient) -> None:
    ada, booked = await patient_id(agent), await book(agent)
    path = f"/api/appointments/{booked}"
    move = {"slotId": (await slots(agent))[2]["id"]}
    await confirmed(agent, "POST", f"{path}/reschedule", move)
    await confirmed(agent, "POST", f"{path}/reschedule", move)  # nothing left to do
    await confirmed(agent, "POST", f"{path}/confirm", {})
    await confirmed(agent, "PATCH", f"/api/patients/{ada}", {"email": "ada@example.com"})
    await confirmed(agent, "POST", f"{path}/cancel", {"reason": "away"})
    person = {"firstName": "Mary", "lastName": "Shelley", "phone": "+1 555 010 0111", "dob": "1990-01-01"}
    mary = (await confirmed(agent, "POST", "/api/patients", person)).json()["patientId"]
    pages = await page_through(agent, f"/api/patients/{ada}/receipts", limit=2)
    pages += await page_through(agent, f"/api/patients/{mary}/receipts")
    keys, seen = await published(world), []
    for each in pages:
        over_mcp = await call_tool(agent, "get_receipt", receiptId=each["id"])
        for text in (await issued(agent, each["id"]), over_mcp["structuredContent"]["receipt"]):
            stated = verify_receipt(text, keys)
            assert f"rcp_{stated['record']['recordId']}" == each["id"]
        seen.append((stated["record"]["operation"], stated["record"]["outcome"]))
    assert seen == [
        ("cancel_appointment", "executed"),
        ("update_patient", "executed"),
        ("confirm_attendance", "executed"),
        ("reschedule_appointment", "unchanged"),
        ("reschedule_appointment", "executed"),
        ("book_appointment", "executed"),
        ("create_patient", "executed"),
    ]
    assert len(await listed(agent, appointmentId=booked)) == 5


async def test_nobody_gets_the_receipt_of_another(world: World, agent: httpx.AsyncClient) -> None:
    booked = await book(agent)
    receipt = (await listed(agent))[0]["id"]
    other, stranger = [await world.client(practice, scopes=WITH_RECEIPTS) for practice in ("harbor", "other")]
    assert await listed(other, appointmentId=booked) == []
    missing = await other.get("/api/receipts/rcp_999999")
    for client in (other, stranger):
        answer = await client.get(f"/api/receipts/{receipt}")
        assert (answer.status_code, answer.json()["detail"]) == (404, missing.json()["detail"])
        assert (await call_tool(client, "get_receipt", receiptId=receipt))["structuredContent"]["code"] == "not_found"
    number = receipt.removeprefix("rcp_")
    for unknown in (number, f"rcp_0{number}", "rcp_", "rcp_-1", "rcp_" + "9" * 30, "rcp_٣", f"{receipt}x"):
        assert (await agent.get(f"/api/receipts/{unknown}")).status_code == 404, unknown
    plain = await world.client()
    for path in (f"/api/receipts/{receipt}", f"/api/patients/{await patient_id(agent)}/receipts"):
        assert (await plain.get(path)).json()["code"] == "forbidden_scope"
        assert (await stranger.get(path)).status_code == 404
    assert "get_receipt" not in (await plain.post("/mcp", json=CALL | {"method": "tools/list"}, headers=MCP)).text


async def test_a_receipt_does_not_claim_that_an_appointment_was_where_the_read_back_says(
    world: World, agent: httpx.AsyncClient
) -> None:
    """Somebody moves it between the challenge and the confirmation."""
    appointment, website = await book(agent), await world.client(grant="integration")
    path = f"/api/appointments/{appointment}"
    challenge = (await agent.post(f"{path}/cancel", json={})).json()
    later = (await slots(agent))[4]
    assert (await website.post(f"{path}/reschedule", json={"slotId": later["id"]})).status_code == 200
    cancelled = await agent.post(f"{path}/cancel", json={"confirmationToken": challenge["confirmationToken"]})
    assert cancelled.status_code == 200
    stated = verify_receipt(await issued(agent, (await listed(agent))[0]["id"]), await published(world))
    assert stated["readBack"]["start"] != later["start"]
    assert "what was executed is what was" not in stated["consent"]["proves"]
    assert "others moved in between was changed where it was then" in stated["consent"]["proves"]


async def test_what_nobody_was_asked_about_has_no_receipt(world: World) -> None:
    integration = await world.client(grant="integration", scopes=WITH_RECEIPTS)
    body = {"patientId": await patient_id(integration), "slotId": (await slots(integration))[0]["id"]}
    headers = {"Idempotency-Key": "k"}
    assert (await integration.post("/api/appointments", json=body, headers=headers)).status_code == 201
    assert await listed(integration) == []
    [record] = await records(world, operation="book_appointment")
    assert (await integration.get(f"/api/receipts/rcp_{record['record_id']}")).status_code == 404


async def test_a_receipt_is_read_as_the_patient_is_read(
    world: World, agent: httpx.AsyncClient, owner: asyncpg.Connection
) -> None:
    booked, ada = await book(agent), await patient_id(agent)
    client_id = agent.headers["X-Test-Client"]
    receipt = (await listed(agent))[0]["id"]
    await issued(agent, receipt)
    for operation, subjects in (("get_receipt", {booked, ada}), ("list_receipts", {ada})):
        [record] = await records(world, operation=operation)
        assert (record["actor"], set(record["subject_ids"]), record["outcome"]) == (client_id, subjects, "executed")

    careful = await world.client(scopes=WITH_RECEIPTS, access_limits=AccessLimits(known_patients_only=True))
    await book(careful)
    own = (await listed(careful))[0]["id"]
    assert (await careful.get(f"/api/receipts/{own}")).status_code == 200
    await owner.execute("DELETE FROM known_patient")
    assert (await careful.get(f"/api/receipts/{own}")).status_code == 404
    assert (await careful.get(f"/api/patients/{ada}/receipts")).status_code == 404

    spent = await world.client(scopes=WITH_RECEIPTS, access_limits=AccessLimits(patients_per_hour=1))
    await book(spent)
    own = (await listed(spent))[0]["id"]
    await owner.execute("UPDATE agreed_challenge SET patient_id = $1", await patient_id(agent, "Grace"))
    assert (await spent.get(f"/api/receipts/{own}")).json()["code"] == "rate_limited"


async def test_a_receipt_is_verified_with_keys_of_long_ago(world: World, agent: httpx.AsyncClient) -> None:
    await book(agent)
    receipt = (await listed(agent))[0]["id"]
    old = await issued(agent, receipt)
    for _ in range(2):
        for purpose in (AUDIT_HEADS, TOKEN_SIGNING):
            await world.service.ring.rotate(purpose)
        world.clock.advance(days=400)
    await world.service.ring.refresh()
    await world.renew(agent)
    keys = await published(world)
    verify_receipt(old, keys)
    assert [key["kid"] for key in keys["keys"]].count(jwt.get_unverified_header(old)["kid"]) == 1
    again = await issued(agent, receipt)
    assert jwt.get_unverified_header(again)["kid"] != jwt.get_unverified_header(old)["kid"]
    assert verify_receipt(again, keys)["head"] == verify_receipt(old, keys)["head"], "signed by the old key"


async def test_the_way_to_the_signed_head_shows_nothing_of_other_records(
    world: World, agent: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    await book(agent)
    receipt, others = (await listed(agent))[0]["id"], await world.client()
    grace = ""
    for _ in range(5):
        grace = await patient_id(others, "Grace")
    await seal(world.database, HARBOR)
    await world.service.audit_heads.sign_due()
    text = await issued(agent, receipt)
    stated = jwt.decode(text, options={"verify_signature": False})
    assert len(stated["links"]) == stated["head"]["sequence"] - stated["record"]["sequence"] > 5
    assert all(re.fullmatch("[0-9a-f]{64}", each) for each in stated["links"])
    told = json.dumps(stated)
    assert grace not in told
    assert others.headers["X-Test-Client"] not in told
    monkeypatch.setattr(receipts, "MAX_LINKS", 5)
    far = verify_receipt(await issued(agent, receipt), await published(world))
    assert far["links"] is None, "the receipt says so"


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE agreed_challenge SET challenge = replace(challenge, 'Chen', 'Eve')",
        "UPDATE agreed_challenge SET intent_id = sha256('x')",
        "UPDATE audit_record SET consent = 'staff' WHERE consent = 'token'",
        "UPDATE audit_record SET challenge = sha256('x') WHERE consent = 'token'",
        "UPDATE audit_record SET actor = 'fd_x' WHERE operation = 'list_receipts'",  # on the way to the head
        "UPDATE audit_seal SET hash = sha256('x') WHERE record_id = (SELECT max(record_id) FROM agreed_challenge)",
        "UPDATE audit_signed_head SET hash = sha256('x')",
    ],
)
async def test_no_receipt_is_issued_about_an_altered_trail(
    world: World, agent: httpx.AsyncClient, owner: asyncpg.Connection, statement: str
) -> None:
    await book(agent)
    receipt = (await listed(agent))[0]["id"]
    await issued(agent, receipt)
    await owner.execute(statement)
    answer = await agent.get(f"/api/receipts/{receipt}")
    assert (answer.status_code, answer.json()["detail"]) == (
        409,
        "The audit trail was altered: no receipt can be issued.",
    )


async def test_the_chain_covers_the_digest_of_the_challenge_and_the_trail_has_no_read_back(
    world: World, agent: httpx.AsyncClient, owner: asyncpg.Connection
) -> None:
    await book(agent)
    assert not (await verify_chain(world.database, HARBOR, world.clock.now)).violations
    rows = await owner.fetch("SELECT * FROM audit_record")
    assert "Lovelace" not in str(rows)
    assert len([row for row in rows if row["challenge"] is not None]) == 1
    await owner.execute("UPDATE audit_record SET challenge = sha256('x') WHERE challenge IS NOT NULL")
    [violation] = (await verify_chain(world.database, HARBOR, world.clock.now)).violations
    assert violation.kind == "changed"
    for forbidden in ("UPDATE agreed_challenge SET challenge = ''", "DELETE FROM agreed_challenge"):
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            async with world.database.transaction(HARBOR) as connection:
                await connection.execute(forbidden)


async def test_a_refused_confirmation_leaves_no_challenge_behind(world: World, owner: asyncpg.Connection) -> None:
    first, second = await world.client(), await world.client()
    body = {"patientId": await patient_id(first), "slotId": (await slots(first))[0]["id"]}
    late = (await second.post("/api/appointments", json=body)).json()["confirmationToken"]
    await confirmed(first, "POST", "/api/appointments", body)
    assert (await second.post("/api/appointments", json={**body, "confirmationToken": late})).status_code in (409, 422)
    assert await owner.fetchval("SELECT count(*) FROM agreed_challenge") == 1
    assert await owner.fetchval("SELECT count(*) FROM audit_record WHERE challenge IS NOT NULL") == 1


async def test_a_practice_without_the_feature_issues_none(world: World, agent: httpx.AsyncClient) -> None:
    await book(agent)
    receipt = (await listed(agent))[0]["id"]
    await switch(world, {"receipts": {"enabled": False}})
    assert (await agent.get(f"/api/receipts/{receipt}")).status_code == 403


async def test_two_nodes_issue_the_receipt_of_a_write_that_no_head_covers_yet(
    world: World, agent: httpx.AsyncClient
) -> None:
    await book(agent)
    [record] = await records(world, operation="book_appointment", outcome="executed")
    other = build_service(world.service.settings, world.database, world.clock)
    await other.ring.load()
    nodes = [service.engine.services[receipts.Receipts] for service in (world.service, other)]
    texts = await asyncio.gather(*(node.issue(HARBOR, record["record_id"]) for node in nodes * 3))
    stated = [verify_receipt(text, await published(world)) for text in texts]
    assert len({each["head"]["hash"] for each in stated}) == 1, "one head was signed"
    await other.ring.rotate(AUDIT_HEADS)
    world.clock.advance(minutes=1)
    later = await nodes[1].issue(HARBOR, record["record_id"])
    await world.service.ring.load()  # every few seconds, before a new key signs
    verify_receipt(later, await published(world))


async def test_the_receipt_of_an_assistants_write_names_who_connected_it(
    world: World, staff: httpx.AsyncClient, agent: httpx.AsyncClient
) -> None:
    assistant = (await connected(world, staff)).http
    wanted = {"patientId": await patient_id(agent), "slotId": (await slots(agent))[0]["id"]}
    match = {"firstName": "Ada", "lastName": "Lovelace", "phone": "555 010 0199", "dob": "1985-12-10"}
    await call_tool(assistant, "match_patient", **match)
    token = (await call_tool(assistant, "book_appointment", **wanted))["structuredContent"]["confirmationToken"]
    booked = await call_tool(assistant, "book_appointment", **wanted, confirmationToken=token)
    assert "appointmentId" in booked["structuredContent"], booked
    [record] = await records(world, operation="book_appointment", outcome="executed")
    text = await world.service.engine.services[receipts.Receipts].issue(HARBOR, record["record_id"])
    stated = verify_receipt(text, await published(world))
    assert stated["askedBy"] == {"clientId": record["actor"], "name": "Claude", "connectedBy": "Ana"}
    assert staff.headers[TEST_STAFF] in stated["record"]["subjectIds"]


@pytest.mark.parametrize("kind", CONSENTS)
def test_every_kind_of_consent_says_whose_word_it_is(kind: Consent) -> None:
    reported = receipts.REPORTED[kind]
    own_word = {"token": "client", "elicitation": "host", "card": "host", "link": "patient", "staff": "staff"}
    assert reported.by == own_word[kind]
    assert ("says" in reported.proves) is (reported.by in ("client", "host"))
