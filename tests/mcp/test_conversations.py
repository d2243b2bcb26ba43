"""Assistants sign in through the real consent page in Chromium, and call a tool for a scripted model."""

from pathlib import Path

import orjson
import pytest

from frontdesk.operations import OPERATIONS
from tests.mcp.consenting import environment_of, person, run_with
from tests.mcp.node_clients import CLAUDE_CODE, OPENCODE, NodeClients
from tests.mcp.scripted_model import ScriptedModel, scripted_model
from tests.mcp.served import Served

pytestmark = pytest.mark.heavy

ADA = {"firstName": "Ada", "lastName": "Lovelace", "phone": "555 010 0199", "dob": "1985-12-10"}
BOX = "Read patients' data"
ASKED = "Is Ada Lovelace a patient of this practice?"


async def runnable(node: NodeClients, pattern: str, home: Path) -> Path:
    program = node.native(pattern)
    ended = await node.run_in(environment_of(home), program, "--version", home=home)
    if ended.status < 0:
        pytest.skip(f"{program.name} is ended by signal {-ended.status}: it is not made for this processor")
    return program


async def check_conversation(served: Served, model: ScriptedModel, prefix: str, client_name: str) -> None:
    """The model was offered every tool, was given the patient's id, and the audit trail names the connection."""
    assert model.offered >= {f"{prefix}{operation.name}" for operation in OPERATIONS}
    assert model.results
    assert all("pat_" in result for result in model.results), model.results
    database = served.service.database
    async with database.transaction(1) as connection:
        record = await connection.fetchrow(
            """SELECT actor, outcome, subject_ids FROM audit_record
               WHERE practice_id = 1 AND operation = 'match_patient' ORDER BY record_id LIMIT 1"""
        )
    assert record is not None
    client = await database.fetchrow("SELECT name, staff_id FROM client WHERE client_id = $1", record["actor"])
    assert client is not None
    assert client_name in client["name"].lower()
    assert record["outcome"] == "executed"
    assert client["staff_id"] in record["subject_ids"]


async def test_claude_code_signs_in_and_calls_a_tool(served: Served, node: NodeClients, tmp_path: Path) -> None:
    claude = await runnable(node, CLAUDE_CODE, tmp_path)
    adding = ["mcp", "add", "--transport", "http", "frontdesk", served.mcp_url]
    added = await node.run_in(environment_of(tmp_path), claude, *adding, home=tmp_path)
    assert added.status == 0, added
    async with person(served) as ana:
        login = ["mcp", "login", "frontdesk"]
        status, written = await run_with(ana, node, claude, login, tmp_path, BOX, at_a_terminal=True)
    assert status == 0, written
    async with scripted_model("match_patient", **ADA) as model:
        environment = environment_of(tmp_path) | {
            "ANTHROPIC_BASE_URL": model.url,
            "ANTHROPIC_API_KEY": "none",
            "ENABLE_TOOL_SEARCH": "false",  # all tools in the first request
        }
        asking = ["-p", ASKED, "--allowedTools", "mcp__frontdesk__match_patient"]
        answered = await node.run_in(environment, claude, *asking, home=tmp_path)
    assert answered.status == 0, answered
    await check_conversation(served, model, "mcp__frontdesk__", "claude code")


async def test_opencode_signs_in_and_calls_a_tool(served: Served, node: NodeClients, tmp_path: Path) -> None:
    opencode = await runnable(node, OPENCODE, tmp_path)
    async with person(served) as ana, scripted_model("match_patient", **ADA) as model:
        options = {"baseURL": f"{model.url}/v1", "apiKey": "none"}
        provider = {"npm": "@ai-sdk/openai-compatible", "options": options, "models": {"model": {"name": "Scripted"}}}
        config = {
            "mcp": {"frontdesk": {"type": "remote", "url": served.mcp_url}},
            "provider": {"scripted": provider},
            "model": "scripted/model",
            "small_model": "scripted/model",
            "share": "disabled",
        }
        (tmp_path / "opencode.json").write_bytes(orjson.dumps(config))
        status, written = await run_with(ana, node, opencode, ["mcp", "auth", "frontdesk"], tmp_path, BOX)
        assert status == 0, written
        assert "Authentication successful" in written
        answered = await node.run_in(environment_of(tmp_path), opencode, "run", ASKED, home=tmp_path)
    assert answered.status == 0, answered
    await check_conversation(served, model, "frontdesk_", "opencode")
