"""Programs that nobody here wrote sign in through the real consent page in Chromium, and call tools."""

from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest

from frontdesk.operations import OPERATIONS
from frontdesk.store.database import Database
from tests.mcp.consenting import PersonWithPasskey, chromium, person, run_with
from tests.mcp.json_rpc import json_rpc
from tests.mcp.node_clients import NodeClients
from tests.mcp.served import Served, serving_here
from tests.support.ports import free_port

pytestmark = pytest.mark.heavy

CONFORMANCE = "conformance-next/dist/index.js"
INSPECTOR = "@modelcontextprotocol/inspector/clients/launcher/build/index.js"
MCP_REMOTE = "mcp-remote/dist/client.js"
MCP_REMOTE_PROXY = "mcp-remote/dist/proxy.js"
CODEX = "@openai/codex/bin/codex.js"
ADA = {"firstName": "Ada", "lastName": "Lovelace", "phone": "555 010 0199", "dob": "1985-12-10"}
NAMES = [operation.name for operation in OPERATIONS]


async def test_the_conformance_suite_passes_its_scenarios_of_authorization(
    served: Served, node: NodeClients, tmp_path: Path
) -> None:
    port = free_port()
    async with httpx.AsyncClient(timeout=30) as http:
        description = {"client_name": "Conformance", "redirect_uris": [f"http://127.0.0.1:{port}/callback"]}
        registered = await http.post(f"{served.url}/oauth/register", json=description)
    arguments = [
        "authorization", "--url", served.url, "--client-id", registered.json()["client_id"], "--resource",
        served.mcp_url, "--port", str(port),
    ]  # fmt: skip
    async with person(served) as ana:
        status, written = await run_with(ana, node, CONFORMANCE, arguments, tmp_path)
    assert status == 0, written
    scenarios = ("authorization-server-metadata-endpoint", "authorization-code-grant")
    assert all(f"{scenario}: 1 passed, 0 failed" in written for scenario in scenarios), "none was skipped"
    assert f"({len(scenarios)} scenarios)" in written, "these are all"
    print(written[written.find("SUMMARY") :])


@pytest.mark.parametrize("line", ["1", "2"])
async def test_the_typescript_client_signs_in(served: Served, node: NodeClients, tmp_path: Path, line: str) -> None:
    script = Path(__file__).parent / "typescript_sign_in.mjs"
    async with person(served) as ana:
        status, written = await run_with(ana, node, script, [str(node.modules), line, served.mcp_url], tmp_path)
    assert status == 0, written
    found = orjson.loads(written.split("RESULT ")[1])
    assert found["tools"] == NAMES
    assert found["practice"]["name"] == "Harbor Family Medicine"


async def test_mcp_remote_signs_in(served: Served, node: NodeClients, tmp_path: Path) -> None:
    address = [served.mcp_url, str(free_port())]
    async with person(served) as ana:
        _, written = await run_with(ana, node, MCP_REMOTE, address, tmp_path)
    assert all(name in written for name in NAMES), written
    # Its proxy, for hosts that only start programs, uses the same sign-in.
    async with json_rpc(node, MCP_REMOTE_PROXY, *address, home=tmp_path) as proxy:
        host = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "host", "version": "1"}}
        await proxy.request("initialize", **host)
        proxy.notify("notifications/initialized")
        answer = await proxy.request("tools/call", name="get_practice", arguments={})
    assert answer["structuredContent"]["name"] == "Harbor Family Medicine"


def inspector_at(served: Served, era: str, home: Path) -> list[str]:
    # Only with OAuth in its settings does it ask for scopes that it lacks later.
    server = {"type": "streamable-http", "url": served.mcp_url, "oauth": {"scopes": "practices:read slots:read"}}
    config = home / "mcp.json"
    config.write_bytes(orjson.dumps({"mcpServers": {"frontdesk": server}}))
    connection = ["--cli", "--config", str(config), "--server", "frontdesk", "--protocol-era", era, "--format", "json"]
    return [*connection, "--callback-url", f"http://127.0.0.1:{free_port()}/oauth/callback", "--method"]


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_the_inspector_signs_in_and_asks_for_more_when_it_needs_it(
    served: Served, node: NodeClients, tmp_path: Path, era: str
) -> None:
    inspector = inspector_at(served, era, tmp_path)
    async with person(served) as ana:
        calling = [*inspector, "tools/call", "--tool-name", "get_practice"]
        status, written = await run_with(ana, node, INSPECTOR, calling, tmp_path)
        assert status == 0, written
        assert "Harbor Family Medicine" in written
        # The next run uses the stored token, or refreshes it, without a prompt.
        status, written = await run_with(ana, node, INSPECTOR, [*inspector, "tools/list"], tmp_path)
        assert status == 0, written
        assert "oauth/authorize" not in written
        assert all(f'"{name}"' in written for name in NAMES)
        given = ["--tool-name", "match_patient", "--tool-args-json", orjson.dumps(ADA).decode()]
        calling = [*inspector, "tools/call", *given]
        status, written = await run_with(ana, node, INSPECTOR, calling, tmp_path, "Read patients' data")
    assert status == 0, written
    assert "patients%3Aread" in written, "the consent page was asked for the scope that was missing"
    assert '"pat_' in written


async def test_the_inspector_identifies_itself_by_a_document(
    database: Database, node: NodeClients, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fetched(url: str) -> dict[str, Any]:
        return {"client_id": url, "client_name": "Inspector", "redirect_uris": ["http://127.0.0.1/oauth/callback"]}

    async with serving_here(database, tmp_path, client_metadata_documents=True) as served, person(served) as ana:
        monkeypatch.setattr(served.service.applications, "_fetch_document", fetched)
        calling = [*inspector_at(served, "modern", tmp_path), "tools/call", "--tool-name", "get_practice"]
        document = ["--client-metadata-url", "https://inspector.example/client.json"]
        status, written = await run_with(ana, node, INSPECTOR, [*calling, *document], tmp_path)
        connected = await database.fetchval("SELECT array_agg(application_id) FROM client")
    assert status == 0, written
    assert "Harbor Family Medicine" in written
    assert connected == ["https://inspector.example/client.json"]


async def test_codex_is_connected_in_three_actions_and_nobody_copies_a_secret(
    database: Database, node: NodeClients, tmp_path: Path
) -> None:
    (tmp_path / ".codex").mkdir()
    (tmp_path / ".codex" / "config.toml").write_text('mcp_oauth_credentials_store = "file"\n')
    # A name, because there are no passkeys at an IP address.
    async with serving_here(database, tmp_path, "localhost") as served, chromium() as browser:
        ana = PersonWithPasskey(browser, served)
        await ana.prepare()
        ana.actions.append(f"paste {served.mcp_url}")
        adding = ["mcp", "add", "frontdesk", "--url", served.mcp_url]
        status, written = await run_with(ana, node, CODEX, adding, tmp_path)
        assert status == 0, written
        async with json_rpc(node, CODEX, "app-server", home=tmp_path) as app:
            await app.request("initialize", clientInfo={"name": "frontdesk-test", "version": "1"})
            app.notify("initialized")
            [listed] = (await app.request("mcpServerStatus/list"))["data"]
            thread = (await app.request("thread/start"))["thread"]["id"]
            call = {"threadId": thread, "server": "frontdesk", "tool": "get_practice", "arguments": {}}
            answer = await app.request("mcpServer/tool/call", **call)
    assert sorted(listed["tools"]) == sorted(NAMES)
    assert answer["structuredContent"]["name"] == "Harbor Family Medicine"
    assert ana.actions == [f"paste {served.mcp_url}", "press Sign in with a passkey", "press Connect"]
