"""A staff member with a browser: follows the address that a program shows, signs in, and agrees to what is ticked."""

import asyncio
import contextlib
import os
import re
import shutil
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from playwright.async_api import Browser, async_playwright

from frontdesk.access.staff.links import link_address, new_link
from frontdesk.access.staff.members import add_staff
from frontdesk.audit.trail import AuditContext
from tests.browser.browsing import ARGUMENTS
from tests.mcp.node_clients import NodeClients
from tests.mcp.served import Served

_ADDRESS = re.compile(rb"https?://\S+/oauth/authorize\?[^\s\"'<>]+")
_SECONDS = 120.0
_LOOK_SECONDS = 0.3
_OPENED = "opened"


@dataclass
class Person:
    browser: Browser
    served: Served
    role: str = "admin"

    async def agree(self, address: str, *boxes: str) -> str:
        """From an empty browser to the answer at the application; returns the address that the browser ends at."""
        now = datetime.now(UTC)
        audit, database = AuditContext("test", now, "0" * 32), self.served.service.database
        member = await add_staff(database, practice="harbor", name="Ana", role=self.role, audit=audit)
        _, token = await new_link(database, member.staff_id, audit=audit)
        window = await self.browser.new_context()
        try:
            page = await window.new_page()
            await page.goto(address)
            await page.get_by_label("Sign-in link").fill(link_address(self.served.url, token))
            await page.get_by_role("button", name="Sign in").click()
            connect = page.get_by_role("button", name="Connect", exact=True)
            await connect.wait_for()
            for box in boxes:
                for offered in await page.get_by_role("checkbox", name=box).all():  # none, if it was not asked for
                    await offered.check()
            await connect.click()
            await page.wait_for_url(lambda url: "code=" in url)
            return page.url
        finally:
            await window.close()


@contextlib.asynccontextmanager
async def person(served: Served) -> AsyncIterator[Person]:
    executable = shutil.which("chromium") or shutil.which("chromium-browser")
    assert executable is not None, "these tests need chromium on the PATH (on Debian: apt-get install chromium)"
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=executable, args=ARGUMENTS)
        yield Person(browser, served)
        await browser.close()


async def run_with(
    who: Person, node: NodeClients, program: str | Path, arguments: Sequence[str], home: Path, *boxes: str
) -> tuple[int, str]:
    """Runs a program that asks for consent, once for every address it shows; its status and all that it wrote."""
    environment = {**os.environ, "HOME": str(home), "NO_COLOR": "1", "PATH": _without_browser(home)}
    # Of the Inspector, which else wants a terminal and a keychain.
    environment |= {"MCP_AUTO_OPEN_ENABLED": "true", "MCP_INSPECTOR_SECRET_STORE": "file"}
    process = await asyncio.create_subprocess_exec(
        node.node, str(node.modules / program), *arguments, env=environment, cwd=home,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    assert process.stdin is not None
    process.stdin.write(b"y\n" * 5)  # an answer for programs that ask before they open a browser
    written, followed = bytearray(), set[bytes]()
    try:
        async with asyncio.timeout(_SECONDS):
            async for part in _parts(process, home / _OPENED):
                written += part
                for address in set(_ADDRESS.findall(written)) - followed:
                    followed.add(address)
                    await who.agree(address.decode(), *boxes)
            status = await process.wait()
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
    return status, written.decode()


async def _parts(process: asyncio.subprocess.Process, opened: Path) -> AsyncIterator[bytes]:
    """What a program writes, and every address that it opens in a browser."""
    assert process.stdout is not None
    reading = asyncio.create_task(process.stdout.read(65536))
    while True:
        await asyncio.wait([reading], timeout=_LOOK_SECONDS)
        if opened.exists():
            yield opened.read_bytes()
            opened.unlink()
        if reading.done():
            if not (part := reading.result()):
                return
            yield part
            reading = asyncio.create_task(process.stdout.read(65536))


def _without_browser(home: Path) -> str:
    """A PATH whose first xdg-open notes the address that it is given."""
    folder = home / "bin"
    folder.mkdir(exist_ok=True)
    (folder / "xdg-open").write_text(f'#!/bin/sh\necho "$1" >> "{home / _OPENED}"\n')
    (folder / "xdg-open").chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"
