"""How a person agreed is stored with every write, and a practice may demand more than a token."""

from typing import Any

import asyncpg
import httpx
import orjson
import pytest
from pydantic.alias_generators import to_camel

from frontdesk.access.staff.members import Role
from frontdesk.audit.trail import seal
from frontdesk.audit.verify import verify_chain
from frontdesk.domain.consent import CONSENTS, consent_required, meets
from frontdesk.operations import OPERATIONS
from frontdesk.outbound.webhooks.events import event_document, newest_events
from frontdesk.practice_file import dump, parse
from frontdesk.practice_file.errors import PracticeFileError
from frontdesk.practice_file.model import ConsentPart
from frontdesk.store.practices import export_practice
from tests.desk.acting import action_context, staff_member
from tests.support.world import PRACTICE, World, book, confirmed, slots

HARBOR = 1


async def demand(world: World, **consents: str) -> None:
    wanted = ", ".join(f"{name}: {kind}" for name, kind in consents.items())
    text = PRACTICE.replace("SLUG", "harbor").replace('phone: "+1 555 0100"}', f"consent: {{{wanted}}}}}", 1)
    await world.import_file(text)


async def act(world: World, operation: str, arguments: dict[str, Any], role: Role = "staff") -> Any:
    member = await staff_member(world, role)
    context = await action_context(world, role, staff_id=member.staff_id)
    return await world.service.desk.run(context, operation, arguments)


async def recorded(world: World, subject: str) -> list[tuple[str, str, str | None]]:
    """Operation, outcome and consent of every record of the appointment's history."""
    rows = await world.database.fetch("SELECT * FROM appointment_changes($1, $2, NULL)", HARBOR, [subject])
    return [(row["operation"], row["outcome"], row["consent"]) for row in rows]


def code(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


async def test_consent_is_in_the_audit_record_the_history_and_the_event(
    world: World, owner: asyncpg.Connection
) -> None:
    agent, integration = await world.client(), await world.client(grant="integration")
    booked = await book(agent)
    slot = (await slots(agent))[0]
    moved = await integration.post(f"/api/appointments/{booked}/reschedule", json={"slotId": slot["id"]})
    assert moved.status_code == 200
    await act(world, "cancel_appointment", {"appointmentId": booked})
    expected = [
        ("book_appointment", "executed", "token"),
        ("reschedule_appointment", "executed", None),
        ("cancel_appointment", "executed", "staff"),
    ]
    assert await recorded(world, booked) == expected, "before the records are sealed"
    assert [event_document(row)["data"].get("consent") for row in await newest_events(world.database, HARBOR, 3)] == [
        "token",
        None,
        "staff",
    ]
    await seal(world.database, HARBOR)
    assert await recorded(world, booked) == expected

    report = await verify_chain(world.database, HARBOR, world.clock.now)
    assert not report.violations
    for other in ("card", None):
        await owner.execute("UPDATE audit_record SET consent = $1 WHERE consent = 'token'", other)
        report = await verify_chain(world.database, HARBOR, world.clock.now)
        assert [violation.kind for violation in report.violations] == ["changed"], "the hash covers the consent"
        await owner.execute(
            "UPDATE audit_record SET consent = 'token' WHERE operation = 'book_appointment' AND outcome = 'executed'"
        )


async def test_a_write_below_the_demand_is_refused_and_executes_nothing(world: World) -> None:
    agent, integration = await world.client(), await world.client(grant="integration")
    booked = await book(agent)
    keyed = {"Idempotency-Key": "moved before the demand"}
    move = {"slotId": (await slots(agent))[0]["id"]}
    path = f"/api/appointments/{booked}"
    first = await integration.post(f"{path}/reschedule", json=move, headers=keyed)
    challenge = (await agent.post(f"{path}/cancel", json={})).json()["confirmationToken"]

    await demand(world, cancelAppointment="elicitation", rescheduleAppointment="token")
    answer = await agent.post(f"{path}/cancel", json={})
    assert code(answer) == (403, "consent_required")
    assert "asks its user" in answer.json()["detail"]
    assert code(await agent.post(f"{path}/cancel", json={"confirmationToken": challenge})) == (403, "consent_required")
    assert code(await integration.post(f"{path}/cancel", json={})) == (403, "consent_required")
    tool = {"name": "cancel_appointment", "arguments": {"appointmentId": booked}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": tool}
    framed = await agent.post("/mcp", json=message, headers={"Accept": "text/event-stream"})
    result = orjson.loads(framed.text.partition("data: ")[2])["result"]
    assert result["isError"]
    assert result["structuredContent"]["code"] == "consent_required"
    assert (await agent.get(path)).json()["status"] == "booked"

    # An integration asks nobody, so even a token is more; what it did before is still answered.
    assert code(await integration.post(f"{path}/reschedule", json=move)) == (403, "consent_required")
    again = await integration.post(f"{path}/reschedule", json=move, headers=keyed)
    assert (again.status_code, again.json()) == (200, first.json())
    other = {"slotId": (await slots(agent))[1]["id"]}
    assert (await confirmed(agent, "POST", f"{path}/reschedule", other)).status_code == 200

    await act(world, "cancel_appointment", {"appointmentId": booked})
    assert (await recorded(world, booked))[-1] == ("cancel_appointment", "executed", "staff")


async def test_the_practice_file_keeps_the_demands(world: World) -> None:
    await demand(world, cancelAppointment="card", bookAppointment="elicitation")
    file = await export_practice(world.database, "harbor", with_patients=False)
    assert file is not None
    assert file.directory.practice.consent == {"book_appointment": "elicitation", "cancel_appointment": "card"}
    assert "consent: {bookAppointment: elicitation, cancelAppointment: card}\n" in dump(file)
    assert parse(dump(file)).directory.practice == file.directory.practice


def test_a_demand_can_name_every_write_and_nothing_else() -> None:
    assert set(ConsentPart.model_fields) == {each.name for each in OPERATIONS if each.kind == "write"}


def test_only_what_patients_do_by_their_links_can_demand_one() -> None:
    text = PRACTICE.replace("SLUG", "harbor").replace("timeZone", "consent: {KEY: link}, timeZone", 1)
    for name in ConsentPart.model_fields:
        written = text.replace("KEY", to_camel(name))
        if name in ("confirm_attendance", "cancel_appointment"):
            assert parse(written).directory.practice.consent == {name: "link"}
        else:
            with pytest.raises(PracticeFileError, match=r"practice\.consent\..+'card' or 'staff'"):
                parse(written)


def test_a_stronger_consent_meets_a_weaker_demand() -> None:
    assert [meets(given, "elicitation") for given in CONSENTS] == [False, True, True, True, True]
    assert meets(None, None)
    assert not meets(None, "token")
    assert len({consent_required(kind).detail for kind in CONSENTS}) == len(CONSENTS), "each says what would do"
