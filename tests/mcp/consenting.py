"""A staff member with a browser: follows the address that a program shows, signs in, and agrees to what is ticked."""

import asyncio
import contextlib
import os
import pty
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
from tests.browser.browsing import ARGUMENTS, AUTHENTICATOR
from tests.mcp.node_clients import NodeClients
from tests.mcp.served import Served

# Not one that is still being written.
_ADDRESS = re.compile(rb"https?://\S+?/oauth/authorize\?[^\s\"'<>\x00-\x1f]+(?=[\s\"'<>\x00-\x1f])")
_SECONDS = 240.0
_POLL_INTERVAL_SECONDS = 0.3
_OPENED = "opened"
# Claude Code and opencode ask nobody on the internet.
_OFFLINE = (
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "DISABLE_AUTOUPDATER",
    "OPENCODE_DISABLE_MODELS_FETCH", "OPENCODE_DISABLE_AUTOUPDATE",
)  # fmt: skip


@dataclass
class Person:
    browser: Browser
    served: Served

    async def new_link(self) -> str:
        audit, database = AuditContext("test", datetime.now(UTC), "0" * 32), self.served.service.database
        member = await add_staff(database, practice="harbor", name="Ana", role="admin", audit=audit)
        _, token = await new_link(database, member.staff_id, audit=audit)
        return link_address(self.served.url, token)

    async def agree(self, address: str, *boxes: str) -> str:
        """From an empty browser to the answer at the application; returns the address that the browser ends at."""
        window = await self.browser.new_context()
        try:
            page = await window.new_page()
            await page.goto(address)
            await page.get_by_label("Sign-in link").fill(await self.new_link())
            await page.get_by_role("button", name="Sign in", exact=True).click()
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


class PersonWithPasskey(Person):
    """Signed in once before, and added a passkey. `actions` are those since then."""

    def __init__(self, browser: Browser, served: Served) -> None:
        super().__init__(browser, served)
        self.actions: list[str] = []

    async def prepare(self) -> None:
        self._page = page = await (await self.browser.new_context()).new_page()
        session = await page.context.new_cdp_session(page)
        await session.send("WebAuthn.enable")
        await session.send("WebAuthn.addVirtualAuthenticator", {"options": AUTHENTICATOR})
        await page.goto(await self.new_link())
        await page.get_by_role("button", name="Sign in", exact=True).click()
        await page.get_by_role("button", name="Add a passkey").click()
        await page.get_by_text("The passkey has been added.").wait_for()

    async def agree(self, address: str, *boxes: str) -> str:
        assert not boxes
        page = self._page
        await page.context.clear_cookies()
        await page.goto(address)
        for button in ("Sign in with a passkey", "Connect"):
            self.actions.append(f"press {button}")
            await page.get_by_role("button", name=button, exact=True).click()
        await page.wait_for_url(lambda url: "code=" in url)
        return page.url


@contextlib.asynccontextmanager
async def person(served: Served) -> AsyncIterator[Person]:
    async with chromium() as browser:
        yield Person(browser, served)


@contextlib.asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    executable = shutil.which("chromium") or shutil.which("chromium-browser")
    assert executable is not None, "these tests need chromium on the PATH (on Debian: apt-get install chromium)"
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=executable, args=ARGUMENTS)
        yield browser
        await browser.close()


async def run_with(
    who: Person,
    node: NodeClients,
    program: str | Path,
    arguments: Sequence[str],
    home: Path,
    *boxes: str,
    at_a_terminal: bool = False,
) -> tuple[int, str]:
    """Runs a program that asks for consent, once for every address it shows; its status and all that it wrote."""
    environment = environment_of(home)
    # Of the Inspector, which else wants a terminal and a keychain.
    environment |= {"MCP_AUTO_OPEN_ENABLED": "true", "MCP_INSPECTOR_SECRET_STORE": "file"}
    (home / _OPENED).unlink(missing_ok=True)
    keyboard, terminal = pty.openpty() if at_a_terminal else (None, asyncio.subprocess.PIPE)
    process = await asyncio.create_subprocess_exec(
        *node.command(program), *arguments, env=environment, cwd=home,
        stdin=terminal, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    if process.stdin is not None:
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
        if keyboard is not None:
            os.close(keyboard)
            os.close(terminal)
    return status, written.decode()


async def _parts(process: asyncio.subprocess.Process, opened: Path) -> AsyncIterator[bytes]:
    """What a program writes, and every address that it opens in a browser."""
    assert process.stdout is not None
    reading, known = asyncio.create_task(process.stdout.read(65536)), 0
    while True:
        await asyncio.wait([reading], timeout=_POLL_INTERVAL_SECONDS)
        # It may open the next one while somebody follows the first.
        if opened.exists() and (addresses := opened.read_bytes()[known:]).endswith(b"\n"):
            known += len(addresses)
            yield addresses
        if reading.done():
            if not (part := reading.result()):
                return
            yield part
            reading = asyncio.create_task(process.stdout.read(65536))


def environment_of(home: Path) -> dict[str, str]:
    """For a program that keeps to `home`, and whose browser is ours."""
    own = {"HOME": str(home), "PWD": str(home), "NO_COLOR": "1", "PATH": _without_browser(home)}
    for name in _OFFLINE:
        own[name] = "1"
    return {name: value for name, value in os.environ.items() if not name.startswith("XDG_")} | own


def _without_browser(home: Path) -> str:
    """A PATH whose first xdg-open notes the address that it is given."""
    folder = home / "bin"
    folder.mkdir(exist_ok=True)
    (folder / "xdg-open").write_text(f'#!/bin/sh\necho "$1" >> "{home / _OPENED}"\n')
    (folder / "xdg-open").chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"
