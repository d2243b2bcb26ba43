"""A Node program that speaks JSON-RPC on its standard streams, one message a line."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import orjson

from tests.mcp.node_clients import NodeClients

_SECONDS = 60.0
_MAX_LINE_BYTES = 16 * 1024 * 1024  # a list of tools is one line


class JsonRpc:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._sent = 0

    async def request(self, method: str, **params: Any) -> Any:
        """The result of a request; what the program says of its own accord in between is skipped."""
        self._sent += 1
        self.notify(method, id=self._sent, params=params)
        assert self._process.stdout is not None
        async with asyncio.timeout(_SECONDS):
            while line := await self._process.stdout.readline():
                message = orjson.loads(line)
                if message.get("id") == self._sent and "method" not in message:
                    assert "result" in message, message
                    return message["result"]
        raise AssertionError("the program has ended")

    def notify(self, method: str, **more: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(orjson.dumps({"jsonrpc": "2.0", "method": method, **more}) + b"\n")


@contextlib.asynccontextmanager
async def json_rpc(
    node: NodeClients, program: str, *arguments: str, home: Path, variables: Mapping[str, str] | None = None
) -> AsyncIterator[JsonRpc]:
    process = await asyncio.create_subprocess_exec(
        node.node, str(node.modules / program), *arguments,
        env={**os.environ, "HOME": str(home), **(variables or {})}, cwd=home, limit=_MAX_LINE_BYTES,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        yield JsonRpc(process)
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
