"""Debian's Firefox as Playwright can drive it: this file is started in its place and passes WebDriver BiDi on."""

import asyncio
import json
import shutil
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

Send = Callable[[str, dict[str, Any]], Any]
ARGUMENTS = ["--marionette"]
PREFERENCES: dict[str, str | float | bool] = {
    "marionette.port": 0,
    "security.webauth.webauthn_enable_softtoken": True,
    "security.webauth.webauthn_enable_usbtoken": False,
    "ui.prefersReducedMotion": 1,
}
# Playwright sends it for every window, and takes a refusal for a failure.
_NOT_KNOWN_YET = "emulation.setMediaFeaturesOverride"
_PROFILE = "firefox-profile"
_LISTENING = "WebDriver BiDi listening on "


def starter(folder: Path) -> Path:
    """An executable that starts this file; the profile is linked from the folder."""
    path = folder / "firefox"
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{__file__}" "{folder / _PROFILE}" "$@"\n')
    path.chmod(0o755)
    return path


@contextmanager
def marionette(folder: Path) -> Iterator[Send]:
    """Sends commands of WebDriver that have no form in BiDi. When it closes, Firefox ends the session of both."""
    port = int((folder / _PROFILE / "MarionetteActivePort").read_text())
    numbers = count()
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection, connection.makefile("rb") as stream:

        def receive() -> Any:
            size = b""
            while (digit := stream.read(1)).isdigit():
                size += digit
            return json.loads(stream.read(int(size)))

        def send(command: str, parameters: dict[str, Any]) -> Any:
            message = json.dumps([0, next(numbers), command, parameters]).encode()
            connection.sendall(b"%d:%s" % (len(message), message))
            _, _, error, result = receive()
            assert error is None, error
            return result

        receive()  # its greeting
        yield send


async def main(profile_link: str, *arguments: str) -> int:
    Path(profile_link).symlink_to(arguments[arguments.index("--profile") + 1])
    executable = shutil.which("firefox-esr") or shutil.which("firefox")
    assert executable is not None, "these tests need Firefox on the PATH (on Debian: apt-get install firefox-esr)"
    process = await asyncio.create_subprocess_exec(executable, *arguments, stderr=asyncio.subprocess.PIPE)
    assert process.stderr is not None
    async for line in process.stderr:
        text = line.decode(errors="replace").rstrip()
        if text.startswith(_LISTENING):
            text = _LISTENING + await _listen(text.removeprefix(_LISTENING))
        print(text, file=sys.stderr, flush=True)
    return await process.wait()


async def _listen(address: str) -> str:
    async def accept(playwright: ServerConnection) -> None:
        async with connect(f"{address}/session", max_size=None, ping_interval=None) as firefox:
            await asyncio.gather(_pass_commands(playwright, firefox), _pass_answers(firefox, playwright))

    server = await serve(accept, "127.0.0.1", 0, max_size=None, ping_interval=None)
    return f"ws://127.0.0.1:{next(iter(server.sockets)).getsockname()[1]}"


async def _pass_commands(playwright: ServerConnection, firefox: ClientConnection) -> None:
    async for message in playwright:
        await firefox.send(message)
    await firefox.close()


async def _pass_answers(firefox: ClientConnection, playwright: ServerConnection) -> None:
    async for message in firefox:
        answer = json.loads(message)
        if answer.get("error") == "unknown command" and _NOT_KNOWN_YET in answer["message"]:
            message = json.dumps({"type": "success", "id": answer["id"], "result": {}})
        await playwright.send(message)
    await playwright.close()


if __name__ == "__main__":
    try:
        sys.exit(asyncio.run(main(*sys.argv[1:])))
    except ConnectionClosed:
        sys.exit(1)
