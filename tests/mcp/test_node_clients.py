"""Clients from the Node world against a real server: the Inspector in both eras, both lines of the TypeScript SDK."""

from pathlib import Path
from typing import Any

import orjson
import pytest

from frontdesk.operations import OPERATIONS
from tests.mcp.node_clients import NodeClients
from tests.mcp.served import Served, coming_days

pytestmark = pytest.mark.heavy

INSPECTOR = "@modelcontextprotocol/inspector/clients/launcher/build/index.js"
TOOL_IS_ERROR = 5
ADA = {"firstName": "Ada", "lastName": "Lovelace", "phone": "555 010 0199", "dob": "1985-12-10"}


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_the_inspector_books_an_appointment(served: Served, node: NodeClients, tmp_path: Path, era: str) -> None:
    token = await served.token()
    connection = ["--cli", served.mcp_url, "--transport", "http", "--protocol-era", era, "--format", "json"]
    connection += ["--header", f"Authorization: Bearer {token}"]

    listed = await node.run(INSPECTOR, *connection, "--method", "tools/list", "--strict", home=tmp_path)
    assert listed.status == 0, listed.errors
    assert "Warning:" not in listed.errors, listed.errors
    assert [tool["name"] for tool in listed.json()["result"]["tools"]] == [operation.name for operation in OPERATIONS]

    async def call(name: str, status: int = 0, /, **arguments: Any) -> Any:
        given = ["--tool-name", name, "--tool-args-json", orjson.dumps(arguments).decode()]
        done = await node.run(INSPECTOR, *connection, "--method", "tools/call", *given, home=tmp_path)
        assert done.status == status, done.errors
        return done.json()["result"]

    patient = (await call("match_patient", **ADA))["structuredContent"]["items"][0]
    ids = {"providerId": 10, "locationId": 1, "visitTypeId": 21, "procedureId": 101}
    slot = (await call("search_slots", **ids, **coming_days()))["structuredContent"]["items"][0]
    booking = {"patientId": patient["id"], "slotId": slot["id"]}
    proposed = await call("book_appointment", **booking)
    assert proposed["content"][0]["text"].startswith("NOTHING HAS BEEN CHANGED YET.")
    confirmation = proposed["structuredContent"]["confirmationToken"]
    booked = await call("book_appointment", **booking, confirmationToken=confirmation)
    found = await call("get_appointment", appointmentId=booked["structuredContent"]["appointmentId"])
    assert found["structuredContent"]["start"] == slot["start"]
    gone = await call("book_appointment", TOOL_IS_ERROR, **booking)
    assert gone["structuredContent"]["code"] == "slot_unavailable"


async def test_the_older_typescript_client_sees_errors_as_they_are(
    served: Served, node: NodeClients, tmp_path: Path
) -> None:
    script = Path(__file__).parent / "typescript_client.mjs"
    done = await node.run(script, str(node.modules), served.mcp_url, await served.token(), home=tmp_path)
    assert done.status == 0, done.errors
    found = done.json()
    assert found["tools"] == [operation.name for operation in OPERATIONS]
    for name in ("missing", "gone"):
        assert found[name]["isError"] is True
        assert found[name]["structuredContent"]["code"] == "not_found"
        assert "not_found (404)" in found[name]["content"][0]["text"]
    assert found["proposed"]["structuredContent"]["code"] == "confirmation_required"
    assert found["done"]["structuredContent"]["patientId"].startswith("pat_")


async def test_the_users_of_typescript_clients_are_asked(served: Served, node: NodeClients, tmp_path: Path) -> None:
    script = Path(__file__).parent / "typescript_elicitation.mjs"
    practice = await served.practice_that_demands(createPatient="elicitation")
    token = await served.token(practice=practice, trusted_to_ask=True)
    for line, name in (("1", "Anna"), ("2", "Berta"), ("2 modern", "Clara")):
        done = await node.run(script, str(node.modules), line, served.mcp_url, token, name, home=tmp_path)
        assert done.status == 0, done.errors
        found = done.json()
        assert [message.splitlines()[1] for message in found["asked"]] == [f"Patient: {name} Hopper"] * 2
        assert found["refused"]["structuredContent"]["code"] == "consent_required"
        assert found["done"]["structuredContent"]["patientId"].startswith("pat_")
