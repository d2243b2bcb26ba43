"""The agent's view in a browser: a whole booking, by mouse, by keyboard, and without scripts."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, Request, Route, expect

from tests.browser.browsing import Window, arrive, keep_toasts, tab_to

pytestmark = pytest.mark.heavy

SEND, CONFIRM = "Send to both doors", "Confirm: send it with the token"


def choose(page: Page, scenario: str) -> None:
    page.get_by_label("Client").select_option(label="Demo agent (agent)")
    page.get_by_role("radio", name=scenario).check()
    page.get_by_role("button", name="Start").click()
    arrive(page.locator("#agent-next"))


def panes(page: Page) -> tuple[str, str]:
    shown = page.locator("#agent-ran")
    return tuple(shown.get_by_role("region", name=name, exact=True).inner_text() for name in ("REST", "MCP"))  # type: ignore[return-value]


def test_a_booking_is_watched_from_the_first_question_to_the_cancellation(window: Callable[..., Window]) -> None:
    page = window("admin").go("/agent")
    choose(page, "Book with a certain doctor")
    page.get_by_role("button", name=SEND).click()
    expect(page.get_by_role("heading", name="Who is calling?")).to_be_visible()
    page.get_by_role("button", name="Run up to the challenge").click()
    expect(page.get_by_role("button", name=CONFIRM)).to_be_visible()
    rest, mcp = panes(page)
    assert "428 Precondition Required" in rest
    assert "event: message" in mcp
    assert "NOTHING HAS BEEN CHANGED YET" in mcp
    expect(page.get_by_text("What it tells the caller").last.locator("xpath=..")).to_contain_text("Is that right?")
    assert page.locator("#agent-done details").count() == 8, "what was done before stays on the page"

    page.get_by_role("button", name=CONFIRM).click()
    expect(page.get_by_role("heading", name="Read what was booked")).to_be_visible()
    booked = [re.findall(r'"appointmentId": "(\w+)"', pane) for pane in panes(page)]
    assert booked[0] == booked[1], "the same token at the other door gets the stored answer"
    assert len(booked[0]) == 1

    page.get_by_role("button", name=SEND).click()
    expect(page.get_by_role("heading", name="Propose to cancel it again")).to_be_visible()
    page.get_by_role("button", name=SEND).click()
    page.get_by_role("button", name=CONFIRM).click()
    expect(page.get_by_role("heading", name="End of the scenario")).to_be_visible()
    assert page.url.endswith("/console/agent"), "nothing of it is in the address"


def test_the_keyboard_alone_is_enough(window: Callable[..., Window]) -> None:
    page = window("admin").go("/agent")
    page.get_by_label("Client").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("radio", name="Book as soon as possible")).to_be_checked()
    page.keyboard.press("Enter")
    arrive(page.get_by_role("button", name=SEND))
    page.get_by_label("firstName").focus()
    page.keyboard.press("Enter")
    heading = page.locator("#agent-ran h2")
    expect(heading).to_have_text("Find a patient")
    expect(heading).to_be_focused()
    tab_to(page, page.get_by_role("button", name=SEND))
    page.keyboard.press("Enter")
    expect(heading).to_have_text("List visit types")


def test_it_works_with_plain_forms(window: Callable[..., Window]) -> None:
    page = window("admin", scripts=False).go("/agent")
    choose(page, "Book with a certain doctor")  # from tomorrow on: a time of today could come too close meanwhile
    for heading in (
        "Who is calling?", "Where?", "With whom?", "What for?", "What exactly?", "When?", "Is that time still free?",
        "Propose the booking",
    ):  # fmt: skip
        page.get_by_role("button", name=SEND).click()
        expect(page.get_by_role("heading", name=heading)).to_be_visible()
    page.get_by_role("button", name=SEND).click()
    expect(page.get_by_role("button", name=CONFIRM)).to_be_visible()
    assert "428" in panes(page)[0]


def test_an_operation_of_ones_own_choice_and_a_simulated_error(window: Callable[..., Window]) -> None:
    page = window("admin").go("/agent")
    choose(page, "Step freely")
    page.get_by_label("Another operation").select_option("list_locations")
    page.get_by_role("button", name="Choose").click()
    expect(page.get_by_role("heading", name="List locations")).to_be_visible()
    page.get_by_label("Simulate").select_option("rate_limited")
    page.get_by_role("button", name=SEND).click()
    expect(page.locator("#agent-ran").get_by_role("region", name="REST")).to_contain_text("429 Too Many Requests")
    expect(page.locator("#agent-ran").get_by_role("region", name="MCP")).to_contain_text("429 Too Many Requests")
    page.get_by_label("Simulate").select_option("")
    page.get_by_role("button", name=SEND).click()
    expect(page.locator("#agent-ran").get_by_role("region", name="REST")).to_contain_text("Harborview")


def test_a_step_is_sent_once_also_where_the_session_is_found_late(window: Callable[..., Window]) -> None:
    page = window("admin").go("/agent")
    choose(page, "Step freely")
    found, sent = list[Route](), list[Request]()
    page.route("**/console/session", lambda route: found.append(route))
    page.on("request", lambda request: sent.append(request) if request.method == "POST" else None)
    page.get_by_role("button", name=SEND).click()
    page.wait_for_timeout(1000)
    assert (len(found), sent) == (1, [])
    found[0].continue_()
    expect(page.locator("#agent-ran").get_by_role("region", name="REST")).to_be_visible()
    assert len(sent) == 1


def test_a_request_can_be_copied_without_the_token(window: Callable[..., Window]) -> None:
    opened = window("admin")
    opened.context.grant_permissions(["clipboard-read", "clipboard-write"])
    keep_toasts(opened)
    page = opened.go("/agent")
    choose(page, "Book with a certain doctor")
    page.get_by_role("button", name=SEND).click()
    page.locator("#agent-ran").get_by_role("button", name="Copy curl").first.click()
    expect(page.get_by_text("Copied.")).to_be_visible()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith("curl -s ")
    assert "Bearer $TOKEN" in copied
    page.evaluate("document.querySelector('[data-toasts]').replaceChildren()")
    page.locator("#agent-ran").get_by_role("button", name="Copy JSON-RPC").click()
    expect(page.get_by_text("Copied.")).to_be_visible()
    assert '"method": "tools/call"' in page.evaluate("navigator.clipboard.readText()")
