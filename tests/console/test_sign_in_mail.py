"""Sign-in links by mail: who gets one, what an answer gives away, and how often one can be asked for."""

import logging
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass

import httpx
import pytest

from frontdesk.access.limits import failed_attempts
from frontdesk.access.staff.links import MAX_UNUSED_LINKS
from frontdesk.access.staff.members import disable_staff
from frontdesk.app import build_app, build_service
from frontdesk.outbound.sign_in_mail import SignInMail
from tests.console.mail_server import MailServer, running_mail_server
from tests.console.signing_in import audited, csrf_in, use_link
from tests.desk.acting import audit_context, staff_member
from tests.support.shared_database import world_of_a_module
from tests.support.world import World

world = world_of_a_module
LINK = re.compile(r"http://test/console/sign-in#(\S+)")


@dataclass
class Console:
    server: MailServer
    mail: SignInMail
    transport: httpx.ASGITransport

    async def ask(self, email: str, address: str = "192.0.2.1") -> httpx.Response:
        transport = httpx.ASGITransport(app=self.transport.app, client=(address, 40_000))
        async with httpx.AsyncClient(transport=transport, base_url="http://test", timeout=30) as browser:
            csrf = csrf_in((await browser.get("/console/sign-in")).text)
            answer = await browser.post("/console/sign-in/mail", data={"csrf": csrf, "email": email})
        await self.mail.drain()
        return answer


@pytest.fixture
async def console(world: World) -> AsyncIterator[Console]:
    async with running_mail_server() as server:
        settings = world.service.settings.model_copy(
            update={"smtp_url": f"smtp://127.0.0.1:{server.port}", "mail_from": "desk@example.com"}
        )
        service = build_service(settings, world.database, world.clock)
        assert service.sign_in_mail is not None
        yield Console(server, service.sign_in_mail, httpx.ASGITransport(app=build_app(service)))
        await service.sign_in_mail.close()


async def test_a_mailed_link_signs_in_for_each_practice_of_the_address(world: World, console: Console) -> None:
    here = await staff_member(world, name="Ana", email="ana@example.com")
    there = await staff_member(world, name="Ana", practice="other", email="ana@example.com")
    await staff_member(world, name="Bob", email="bob@example.com")
    answer = await console.ask(" Ana@Example.com ")
    assert "a link is on its way" in answer.text
    (mail,) = console.server.mails
    assert (mail["To"], mail["From"], mail["Auto-Submitted"]) == (
        "ana@example.com", "desk@example.com", "auto-generated",
    )  # fmt: skip
    text = mail.get_content()
    tokens = LINK.findall(text)
    assert re.findall(r"Practice (\S+):\s+http", text) == ["harbor", "other"]
    names = await world.database.fetch("SELECT name FROM practice")
    assert not any(row["name"] in text for row in names), "what admins have written"
    assert len(tokens) == 2
    for token, member in zip(tokens, (here, there), strict=True):
        browser = world.anonymous()
        assert (await use_link(browser, token)).status_code == 303
        assert member.staff_id in (await browser.get("/console/account")).text
        recorded = await audited(world, member.practice_slug)
        assert ("console.mail_link", "executed", "sign-in-page") in recorded
    assert (await use_link(world.anonymous(), tokens[0])).status_code == 401


async def test_the_answer_says_nothing_about_the_address(world: World, console: Console) -> None:
    member = await staff_member(world, name="Cara", email="cara@example.com")
    await disable_staff(world.database, member.staff_id, audit=audit_context(world.clock))
    await staff_member(world, name="Dan", email="dan@example.com")
    answers = [await console.ask(f"{name}@example.com") for name in ("dan", "cara", "nobody")]
    texts = {re.sub(r"[0-9a-f]{64}", "-", answer.text) for answer in answers}
    assert len(texts) == 1, "and the address is looked up after the answer"
    assert [mail["To"] for mail in console.server.mails] == ["dan@example.com"]
    for typed in ("dan@example.com\r\nBcc: x@example.com", "", "x" * 5000):
        assert (await console.ask(typed)).status_code == 200
    assert len(console.server.mails) == 1


async def test_requests_are_limited(
    world: World, console: Console, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    await staff_member(world, name="Eve", email="eve@example.com")
    monkeypatch.setattr(failed_attempts, "MAILS_PER_RECIPIENT", 2)
    answers = [await console.ask("eve@example.com", f"198.51.100.{number}") for number in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert "Too many attempts" in answers[-1].text
    first = LINK.findall(console.server.mails[0].get_content())[0]
    monkeypatch.setattr(failed_attempts, "MAILS_PER_ADDRESS", 3)
    answers = [await console.ask(f"{number}@example.com", "203.0.113.9") for number in range(4)]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
    for _ in range(MAX_UNUSED_LINKS):
        console.mail.request("eve@example.com", "0" * 32)
    await console.mail.drain()
    assert len(console.server.mails) == MAX_UNUSED_LINKS, "no more until these expire"
    assert (await use_link(world.anonymous(), first)).status_code == 303, "others cannot make it stop working"
    console.server.refuses = True
    await staff_member(world, name="Fay", email="fay@example.com")
    world.clock.advance(minutes=16)
    with caplog.at_level(logging.WARNING):
        assert (await console.ask("fay@example.com", "203.0.113.10")).status_code == 200
    assert "the mail server is unavailable or refused it" in caplog.text
    assert "@example.com" not in caplog.text


async def test_without_a_mail_server_nothing_is_offered(world: World) -> None:
    browser = world.anonymous()
    page = await browser.get("/console/sign-in")
    assert "Mail me" not in page.text
    form = {"csrf": csrf_in(page.text), "email": "ana@example.com"}
    assert (await browser.post("/console/sign-in/mail", data=form)).status_code == 404
    assert (await browser.post("/console/sign-in/mail", data={**form, "csrf": "0" * 64})).status_code == 403
