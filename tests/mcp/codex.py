"""Codex as a client of MCP servers, without a model: what its app server lists and calls with the stored sign-in."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import orjson

from tests.mcp.node_clients import NodeClients

PROGRAM = "@openai/codex/bin/codex.js"
_SECONDS = 60.0
_LONGEST_LINE = 16 * 1024 * 1024  # a list of tools is one line


def keep_tokens_in_a_file(home: Path) -> None:
    """Instead of in the keychain of the machine, if it has one."""
    (home / ".codex").mkdir()
    (home / ".codex" / "config.toml").write_text('mcp_oauth_credentials_store = "file"\n')


class AppServer:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._sent = 0

    async def request(self, method: str, **params: Any) -> Any:
        """The result of a request; what the server says of its own accord in between is skipped."""
        self._sent += 1
        self.notify(method, id=self._sent, params=params)
        assert self._process.stdout is not None
        async with asyncio.timeout(_SECONDS):
            while line := await self._process.stdout.readline():
                message = orjson.loads(line)
                if message.get("id") == self._sent and "method" not in message:
                    assert "result" in message, message
                    return message["result"]
        raise AssertionError("the app server has ended")

    def notify(self, method: str, **more: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(orjson.dumps({"method": method, **more}) + b"\n")


@contextlib.asynccontextmanager
async def app_server(node: NodeClients, home: Path) -> AsyncIterator[AppServer]:
    environment: Mapping[str, str] = {**os.environ, "HOME": str(home)}
    process = await asyncio.create_subprocess_exec(
        node.node, str(node.modules / PROGRAM), "app-server", env=environment, cwd=home, limit=_LONGEST_LINE,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        server = AppServer(process)
        await server.request("initialize", clientInfo={"name": "frontdesk-test", "version": "1"})
        server.notify("initialized")
        yield server
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
