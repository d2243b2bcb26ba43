"""What README and guide show for other clients, pasted: it works, and no argument of a program holds a secret."""

import asyncio
import json
import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.mcp.consenting import environment_of
from tests.mcp.json_rpc import JsonRpc, json_rpc
from tests.mcp.node_clients import CLAUDE_CODE, NodeClients
from tests.mcp.served import Served

pytestmark = pytest.mark.heavy

ROOT = Path(__file__).parents[2]
README, GUIDE = ROOT / "README.md", ROOT / "docs" / "users" / "mcp.md"
PROGRAMS = {"@modelcontextprotocol/inspector": "clients/launcher/build/index.js", "mcp-remote": "dist/proxy.js"}
ARGUMENTS = "arguments.txt"
HOST = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "host", "version": "1"}}


def blocks(document: Path, language: str, containing: str) -> list[str]:
    found = re.findall(rf"^```{language}\n(.*?)^```$", document.read_text(), re.DOTALL | re.MULTILINE)
    matching = [each for each in found if containing in each]
    assert matching, f"{document.name} shows no {language} with {containing}"
    return matching


def stand_ins(node: NodeClients, home: Path) -> None:
    """`npx` and `claude` of the pinned packages, which note the arguments that they are given."""
    folder = home / "bin"
    folder.mkdir(exist_ok=True)
    note = f'#!/bin/bash\nprintf "%s\\n" "$0" "$@" >> "{home / ARGUMENTS}"\n'
    chosen = "".join(
        f'  {package}@*) program="{node.modules / package / script}" ;;\n' for package, script in PROGRAMS.items()
    )
    run = f'[ "$1" != -y ] || shift\ncase "$1" in\n{chosen}esac\nshift\nexec "{node.node}" "$program" "$@"\n'
    for name, text in (("npx", run), ("claude", f'exec "{node.native(CLAUDE_CODE)}" "$@"\n')):
        (folder / name).write_text(note + text)
        (folder / name).chmod(0o755)


async def paste(script: str, home: Path, given: Mapping[str, str]) -> str:
    """What it prints. The reader has set variables, and exported none of them."""
    variables = "".join(f"{name}={value}\n" for name, value in given.items())
    process = await asyncio.create_subprocess_exec(
        "bash", "-euo", "pipefail", "-s", env=environment_of(home), cwd=home,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    printed, _ = await process.communicate((variables + script).encode())
    assert process.returncode == 0, printed.decode()
    return printed.decode()


def configured(document: Path, served: Served) -> dict[str, Any]:
    """How Claude Desktop starts its server, at the address of this one."""
    (text,) = blocks(document, "json", "mcpServers")
    for written in ("http://127.0.0.1:8080", "https://desk.example.org"):
        text = text.replace(written, served.url)
    server: dict[str, Any] = json.loads(text)["mcpServers"]["frontdesk"]
    assert server["command"] == "npx"
    assert server["args"][0] == "-y"
    return server


async def name_of_practice(proxy: JsonRpc) -> str:
    await proxy.request("initialize", **HOST)
    proxy.notify("notifications/initialized")
    answer = await proxy.request("tools/call", name="get_practice", arguments={})
    name: str = answer["structuredContent"]["name"]
    return name


@pytest.mark.parametrize("document", [README, GUIDE], ids=["readme", "guide"])
async def test_claude_code_and_the_inspector_connect_as_pasted(
    served: Served, node: NodeClients, tmp_path: Path, document: Path
) -> None:
    stand_ins(node, tmp_path)
    token = await served.token()
    given = {"URL": served.url, "TOKEN": token}
    (script, *further) = blocks(document, "bash", "{TOKEN}'")
    scripts = dict.fromkeys([script, *further, *blocks(document, "bash", "inspector")])
    printed = await paste("export TOKEN\n" + "\n".join(scripts) + "\nclaude mcp list\n", tmp_path, given)
    assert '"get_practice"' in printed
    assert "✔ Connected" in printed
    assert stat.S_IMODE((tmp_path / "desk.json").stat().st_mode) == 0o600
    assert token not in (tmp_path / ".claude.json").read_text()
    arguments = (tmp_path / ARGUMENTS).read_text()
    assert arguments.count("--header") == 1
    assert token not in arguments


async def test_the_guide_s_token_is_asked_for_without_the_secret_in_an_argument(served: Served, tmp_path: Path) -> None:
    credentials = await served.client()
    given = {"URL": served.url, "CLIENT_ID": credentials.client_id, "CLIENT_SECRET": credentials.secret}
    (script,) = blocks(GUIDE, "bash", "/oauth/token")
    assert (await paste(script + 'bash -c "echo ${#TOKEN}"', tmp_path, given)).strip() != "0"
    assert not re.search(r"\bcurl\b[^|]*\$\{?(CLIENT_SECRET|TOKEN)", GUIDE.read_text())


async def test_claude_desktop_of_the_readme_reads_the_token_from_the_environment(
    served: Served, node: NodeClients, tmp_path: Path
) -> None:
    server = configured(README, served)
    given = {name: value.replace("TOKEN", await served.token()) for name, value in server["env"].items()}
    assert not any("TOKEN" in argument for argument in server["args"])
    program = f"mcp-remote/{PROGRAMS['mcp-remote']}"
    async with json_rpc(node, program, *server["args"][2:], home=tmp_path, variables=given) as proxy:
        assert await name_of_practice(proxy) == "Harbor Family Medicine"


async def test_claude_desktop_of_the_guide_gets_tokens_with_credentials_from_a_file(
    served: Served, node: NodeClients, tmp_path: Path
) -> None:
    server = configured(GUIDE, served)
    (shown,) = blocks(GUIDE, "json", "client_secret")
    credentials = await served.client()
    file = tmp_path / "desk-client.json"
    file.write_text(shown.replace("fd_...", credentials.client_id).replace("fds_...", credentials.secret))
    arguments = [re.sub(r"^@/.*/", f"@{tmp_path}{os.sep}", argument) for argument in server["args"][2:]]
    assert f"@{file}" in arguments
    async with json_rpc(node, f"mcp-remote/{PROGRAMS['mcp-remote']}", *arguments, home=tmp_path) as proxy:
        assert await name_of_practice(proxy) == "Harbor Family Medicine"
    kept = [path for path in (tmp_path / ".mcp-auth").rglob("*") if path.is_file()]
    assert {stat.S_IMODE(path.stat().st_mode) & 0o077 for path in kept} <= {0}
