"""Programs that nobody here wrote sign in through the real consent page in Chromium, and call tools."""

from pathlib import Path

import httpx
import orjson
import pytest

from frontdesk.operations import OPERATIONS
from tests.mcp.consenting import person, run_with
from tests.mcp.node_clients import NodeClients
from tests.mcp.served import Served
from tests.ports import free_port

pytestmark = pytest.mark.heavy

CONFORMANCE = "conformance-next/dist/index.js"
INSPECTOR = "@modelcontextprotocol/inspector/clients/launcher/build/index.js"
MCP_REMOTE = "mcp-remote/dist/client.js"
NAMES = [operation.name for operation in OPERATIONS]


async def test_the_conformance_suite_passes_its_scenarios_of_authorization(
    served: Served, node: NodeClients, tmp_path: Path
) -> None:
    port = free_port()
    async with httpx.AsyncClient() as http:
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
    async with person(served) as ana:
        _, written = await run_with(ana, node, MCP_REMOTE, [served.mcp_url, str(free_port())], tmp_path)
    assert all(name in written for name in NAMES), written


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_the_inspector_signs_in(served: Served, node: NodeClients, tmp_path: Path, era: str) -> None:
    connection = ["--cli", served.mcp_url, "--transport", "http", "--protocol-era", era, "--format", "json"]
    connection += ["--callback-url", f"http://127.0.0.1:{free_port()}/oauth/callback"]
    async with person(served) as ana:
        calling = [*connection, "--method", "tools/call", "--tool-name", "get_practice"]
        status, written = await run_with(ana, node, INSPECTOR, calling, tmp_path)
        assert status == 0, written
        assert "Harbor Family Medicine" in written
        # The next run uses the stored token, or refreshes it, without a prompt.
        status, written = await run_with(ana, node, INSPECTOR, [*connection, "--method", "tools/list"], tmp_path)
    assert status == 0, written
    assert "oauth/authorize" not in written
    assert all(f'"{name}"' in written for name in NAMES)
