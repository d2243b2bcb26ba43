"""Books an appointment over the Model Context Protocol with the official SDK, as the demo practice's agent.

.venv/bin/python examples/book_over_mcp.py
"""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

URL = os.environ.get("FRONTDESK_BASE_URL", "http://127.0.0.1:8080")
CREDENTIALS = Path(os.environ.get("FRONTDESK_DATA_DIR", ".frontdesk")) / "demo-credentials.json"


async def main() -> None:
    agent = json.loads(CREDENTIALS.read_text())["agent"]
    form = {
        "grant_type": "client_credentials",
        "client_id": agent["clientId"],
        "client_secret": agent["clientSecret"],
    }
    async with httpx2.AsyncClient() as http:
        token = (await http.post(f"{URL}/oauth/token", data=form)).json()["access_token"]
        http.headers["Authorization"] = f"Bearer {token}"
        async with Client(streamable_http_client(f"{URL}/mcp", http_client=http)) as client:

            async def call(tool: str, **arguments: Any) -> dict[str, Any]:
                result = await client.call_tool(tool, arguments)
                if result.is_error or result.structured_content is None:
                    raise SystemExit(f"{tool}: {result.content}")
                return result.structured_content

            person = {"firstName": "Ada", "lastName": "Lovelace", "phone": "555 010 0199", "dob": "1985-12-10"}
            patient = (await call("match_patient", **person))["items"][0]
            visit_type = (await call("list_visit_types", name="follow-up"))["items"][0]
            procedure = (await call("list_procedures", visitTypeId=visit_type["id"]))["items"][0]
            provider = (await call("list_providers", name="Bob Chen"))["items"][0]
            wanted = {
                "visitTypeId": visit_type["id"],
                "procedureId": procedure["id"],
                "providerId": provider["id"],
            }
            found = await call("find_first_available", **wanted)
            slot = await call("get_slot", slotId=found["items"][0]["id"])
            print(f"Offered: {slot['start']} with {slot['providerName']} at {slot['locationName']}")

            booking = {"patientId": patient["id"], "slotId": slot["id"]}
            proposal = await call("book_appointment", **booking)
            print("Read back:", json.dumps(proposal["readBack"], ensure_ascii=False))
            booked = await call("book_appointment", **booking, confirmationToken=proposal["confirmationToken"])
            print("Booked:", booked["appointmentId"])


if __name__ == "__main__":
    asyncio.run(main())
