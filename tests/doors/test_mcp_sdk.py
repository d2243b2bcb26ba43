"""The official SDK's own client against a real server: both eras, and connecting with nothing but a secret."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx2
import orjson
import pytest
from mcp import Client
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError
from mcp_types import ElicitRequestParams, ElicitResult

from frontdesk.doors.mcp.instructions import INSTRUCTIONS
from frontdesk.operations import OPERATIONS
from frontdesk.practice_file import parse
from frontdesk.store.embedded.server import EmbeddedPostgres
from frontdesk.store.practices import import_practice
from tests.mcp.served import Served, coming_days, serving
from tests.support.shared_database import as_owner, new_database, opened
from tests.support.world import PRACTICE


@pytest.fixture(scope="module")
async def served(
    cluster: EmbeddedPostgres, template: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Served]:
    async with (
        new_database(cluster, template) as dsn,
        opened(dsn) as database,
        serving(database, dsn, as_owner(dsn), tmp_path_factory.mktemp("served")) as running,
    ):
        yield running


class Forgetful:
    """Token storage of the SDK, for the life of a test."""

    def __init__(self) -> None:
        self.tokens: OAuthToken | None = None
        self.client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


async def call(client: Client, tool: str, /, **arguments: Any) -> dict[str, Any]:
    """The structured content of a call that succeeds; the SDK has held it to the tool's outputSchema."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    assert isinstance(result.structured_content, dict)
    return result.structured_content


@pytest.mark.parametrize(
    ("mode", "version"), [("legacy", "2025-11-25"), ("auto", "2026-07-28"), ("2026-07-28", "2026-07-28")]
)
async def test_the_sdk_client_books_in_eight_steps(served: Served, mode: str, version: str) -> None:
    headers = {"Authorization": f"Bearer {await served.token()}"}
    async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
        transport = streamable_http_client(served.mcp_url, http_client=http)
        async with Client(transport, mode=mode) as client:
            assert client.protocol_version == version
            if mode != "2026-07-28":  # told to skip discovery, the client knows nothing of the server
                assert client.server_info is not None
                assert client.server_info.name == "frontdesk"
                assert client.instructions == INSTRUCTIONS
            listed = await client.list_tools()
            assert [tool.name for tool in listed.tools] == [operation.name for operation in OPERATIONS]

            person = {"firstName": "ada", "lastName": "LOVELACE", "phone": "(555) 010-0199", "dob": "1985-12-10"}
            patient = (await call(client, "match_patient", **person))["items"][0]
            location = (await call(client, "list_locations", name="main st"))["items"][0]
            provider = (await call(client, "list_providers", locationId=location["id"], name="Dr. bob"))["items"][0]
            visit_type = (await call(client, "list_visit_types", name="follow"))["items"][0]
            procedure = (await call(client, "list_procedures", visitTypeId=visit_type["id"]))["items"][0]
            query = {
                "providerId": provider["id"],
                "locationId": location["id"],
                "visitTypeId": visit_type["id"],
                "procedureId": procedure["id"],
                **coming_days(),
            }
            slot = (await call(client, "search_slots", **query))["items"][0]
            assert (await call(client, "get_slot", slotId=slot["id"]))["available"] is True

            booking = {"patientId": patient["id"], "slotId": slot["id"]}
            proposed = await client.call_tool("book_appointment", booking)
            assert not proposed.is_error
            assert proposed.content[0].type == "text"
            assert proposed.content[0].text.startswith("NOTHING HAS BEEN CHANGED YET.")
            challenge = proposed.structured_content
            assert isinstance(challenge, dict)
            assert (await call(client, "get_slot", slotId=slot["id"]))["available"] is True

            confirmed = {**booking, "confirmationToken": challenge["confirmationToken"]}
            booked = await call(client, "book_appointment", **confirmed)
            appointment = await call(client, "get_appointment", appointmentId=booked["appointmentId"])
            assert (appointment["status"], appointment["start"]) == ("booked", slot["start"])
            assert await call(client, "book_appointment", **confirmed) == booked

            with pytest.raises(MCPError, match="Unknown tool"):
                await client.call_tool("drop_all_tables", {})

            gone = await client.call_tool("book_appointment", booking)
            assert gone.is_error
            assert gone.structured_content is not None
            assert gone.structured_content["code"] == "slot_unavailable"


async def test_the_sdk_connects_knowing_only_address_id_and_secret(served: Served) -> None:
    credentials = await served.client(scopes=["practices:read", "slots:read"])
    with pytest.warns(MCPDeprecationWarning):
        provider = ClientCredentialsOAuthProvider(
            served.mcp_url, Forgetful(), client_id=credentials.client_id, client_secret=credentials.secret
        )
    async with (
        httpx2.AsyncClient(auth=provider, timeout=60) as http,
        Client(streamable_http_client(served.mcp_url, http_client=http), mode="auto") as client,
    ):
        assert await call(client, "get_capabilities") == {"capabilities": ["practices:read", "slots:read"]}
        refused = await client.call_tool("get_patient", {"patientId": "pat_0000000000000000000000"})
        assert refused.is_error
        assert refused.structured_content is not None
        assert refused.structured_content["code"] == "forbidden_scope"


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_the_sdk_client_asks_its_user_where_the_practice_demands_it(served: Served, mode: str) -> None:
    text = PRACTICE.replace("SLUG", f"asks-{mode}").replace(
        "timeZone", "consent: {createPatient: elicitation}, timeZone", 1
    )
    await import_practice(served.service.database, parse(text), datetime.now(UTC))
    headers = {"Authorization": f"Bearer {await served.token(practice=f'asks-{mode}', trusted_to_ask=True)}"}
    answers, asked = [ElicitResult(action="decline"), ElicitResult(action="accept", content={"confirm": True})], []

    async def ask(context: Any, params: ElicitRequestParams) -> ElicitResult:
        asked.append(params.message)
        return answers.pop(0)

    grace = {"firstName": "Grace", "lastName": "Hopper", "dob": "1906-12-09", "phone": "+1 555 010 0143"}
    async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
        transport = streamable_http_client(served.mcp_url, http_client=http)
        async with Client(transport, mode=mode, elicitation_callback=ask) as client:
            refused = await client.call_tool("create_patient", grace)
            assert refused.is_error
            assert refused.structured_content is not None
            assert refused.structured_content["code"] == "consent_required"
            assert (await call(client, "create_patient", **grace))["patientId"]
    assert [message.splitlines()[1] for message in asked] == ["Patient: Grace Hopper"] * 2


@pytest.mark.heavy
async def test_the_guide_s_programs_run_as_they_stand(served: Served, tmp_path: Path) -> None:
    guide = (Path(__file__).parents[2] / "docs" / "users" / "mcp.md").read_text()
    credentials = await served.client()
    given = {"URL": served.url, "CLIENT_ID": credentials.client_id, "CLIENT_SECRET": credentials.secret}

    async def output(*command: str) -> str:
        process = await asyncio.create_subprocess_exec(
            *command, env={**os.environ, **given}, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )
        printed, _ = await process.communicate()
        assert process.returncode == 0, printed.decode()
        return printed.decode()

    program = guide.split("```python\n")[1].split("```")[0]
    assert "Harbor Family Medicine" in await output(sys.executable, "-c", program)
    helper = guide.split("```sh\n")[1].split("```")[0]
    headers = orjson.loads(await output("sh", "-c", helper))
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60) as http,
        Client(streamable_http_client(served.mcp_url, http_client=http), mode="legacy") as client,
    ):
        assert (await call(client, "get_practice"))["name"] == "Harbor Family Medicine"
