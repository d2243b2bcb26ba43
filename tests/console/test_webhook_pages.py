"""Webhooks at the console: who is told, at public addresses only, and what could not be delivered."""

import asyncio
import re
import socket
from typing import Any

import httpx
import pytest

from frontdesk.outbound.webhooks.deliveries import list_deliveries
from frontdesk.outbound.webhooks.endpoints import add_endpoint, list_endpoints, show_endpoint
from tests.console.admin_pages import EVIL, practice_id, text_of
from tests.console.filled_forms import send
from tests.console.signing_in import TEST_STAFF, audited, waiting_for
from tests.support.world import World

WEBHOOKS = "/console/practice/webhooks"
SECRET = re.compile(r"whsec_[A-Za-z0-9+/=]+")


async def endpoint(world: World, slug: str = "harbor") -> str:
    """An endpoint with one dead letter."""
    practice = await practice_id(world, slug)
    url = f"https://{slug}.example.com/hook?a=1&b=<i>"
    added, _ = await add_endpoint(
        world.database, world.service.desk.webhooks.cipher, practice, url, [], world.clock.now
    )
    async with world.database.transaction(practice) as connection:
        event = await connection.fetchval(
            """INSERT INTO outbox (practice_id, type, subject, occurred_at)
               VALUES ($1, 'appointment.booked', '{}', $2) RETURNING event_id""",
            practice,
            world.clock.now,
        )
        await connection.execute(
            """INSERT INTO webhook_delivery (practice_id, endpoint_id, event_id, subject, state, attempts, due_at)
               VALUES ($1, $2, $3, 's', 'dead', 9, $4)""",
            practice,
            added.endpoint_id,
            event,
            world.clock.now,
        )
    return added.endpoint_id


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The address of each name below example.com; others are looked up as usual."""
    known: dict[str, str] = {}
    usual = socket.getaddrinfo

    def lookup(host: Any, port: Any, *given: Any, **more: Any) -> Any:
        if not str(host).endswith(".example.com"):
            return usual(host, port, *given, **more)
        if host not in known:
            raise socket.gaierror(socket.EAI_NONAME, "unknown")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (known[host], port))]

    monkeypatch.setattr(socket, "getaddrinfo", lookup)
    return known


async def test_an_endpoint_is_added_once_tested_given_a_new_secret_and_removed(
    world: World, admin: httpx.AsyncClient, names: dict[str, str]
) -> None:
    page = await admin.get(WEBHOOKS)
    assert "frontdesk webhook add --practice harbor" in text_of(page), "for private networks"
    names["hooks.example.com"] = "93.184.216.34"
    typed = {"url": "https://hooks.example.com/in", "events": ["appointment.booked", "patient.created"]}
    both = await asyncio.gather(*(send(admin, page, WEBHOOKS, having="url", **typed) for _ in range(2)))
    [made] = [each for each in both if each.status_code == 200]
    [again] = [each for each in both if each.status_code != 200]
    assert (again.status_code, "notice=secret_shown" in again.headers["Location"]) == (303, True)
    [secret] = SECRET.findall(made.text)
    [added] = await list_endpoints(world.database, await practice_id(world, "harbor"))
    assert (added.url, list(added.events), added.public_only) == (typed["url"], typed["events"], True)
    listed = await admin.get(WEBHOOKS)
    assert secret not in listed.text

    one = f"{WEBHOOKS}/{added.endpoint_id}"
    names["hooks.example.com"] = "127.0.0.1"
    tested = await admin.post(f"{one}/test")
    assert "was not received: forbidden address, after" in text_of(tested)
    first = await send(admin, listed, f"{one}/rotate")
    second = await send(admin, listed, f"{one}/rotate")
    [rotated] = SECRET.findall(first.text)
    assert rotated != secret
    assert (second.status_code, SECRET.findall(second.text)) == (303, [])
    assert (await admin.post(f"{one}/remove")).status_code == 303
    assert await list_endpoints(world.database, await practice_id(world, "harbor")) == []
    mine = [record for record in await audited(world) if "webhook" in record[0]]
    assert mine == [
        (f"console.{act}", "executed", admin.headers[TEST_STAFF])
        for act in ("add_webhook", "test_webhook", "rotate_webhook_secret", "remove_webhook")
    ]


async def test_only_public_https_addresses_are_added_and_names_inside_the_network_stay_unknown(
    world: World, admin: httpx.AsyncClient, names: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    names["inside.example.com"] = "10.0.0.7"
    page = await admin.get(WEBHOOKS)
    messages = []
    for url in (
        "https://inside.example.com/x",
        "https://unknown.example.com/x",
        "https://127.0.0.1/",
        "https://[::ffff:169.254.169.254]/",
        "http://93.184.216.34/",
        "https://user@93.184.216.34/",
        f"https://{EVIL}/",
        "",
    ):
        refused = await send(admin, page, WEBHOOKS, having="url", url=url)
        assert refused.status_code == 422, url
        messages += re.findall(r'id="url-error">.*?<span>(.*?)</span>', refused.text, re.DOTALL)
        assert "<img src=x" not in refused.text
    assert len(messages) == 8
    assert messages[0] == messages[1] == "The address must be a public address."
    names["hooks.example.com"] = "93.184.216.34"
    wrong = await send(admin, page, WEBHOOKS, having="url", url="https://hooks.example.com/", events="x")
    assert "There is no event 'x'" in text_of(wrong)
    monkeypatch.setattr("frontdesk.desk.webhooks.MAX_ENDPOINTS", 0)
    full = await send(admin, page, WEBHOOKS, having="url", url="https://hooks.example.com/")
    assert "remove one first" in full.text
    assert await list_endpoints(world.database, await practice_id(world, "harbor")) == []


async def test_endpoints_added_at_the_same_time_do_not_exceed_the_most(
    world: World, admin: httpx.AsyncClient, names: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("frontdesk.desk.webhooks.MAX_ENDPOINTS", 2)
    names["hooks.example.com"] = "93.184.216.34"
    harbor = await practice_id(world, "harbor")
    pages = [await admin.get(WEBHOOKS) for _ in range(4)]
    async with world.database.transaction() as connection:
        await connection.execute("SELECT FROM practice WHERE practice_id = $1 FOR UPDATE", harbor)
        adding = [
            asyncio.create_task(send(admin, page, WEBHOOKS, having="url", url="https://hooks.example.com/"))
            for page in pages
        ]
        await waiting_for(connection, len(adding))
    answers = await asyncio.gather(*adding)
    assert sorted(answer.status_code for answer in answers) == [200, 200, 422, 422]
    assert len(await list_endpoints(world.database, harbor)) == 2
    await endpoint(world)  # the operator adds as many as they like


async def test_dead_letters_are_shown_and_sent_once_more(world: World, admin: httpx.AsyncClient) -> None:
    endpoint_id = await endpoint(world)
    page = await admin.get("/console/practice/webhooks")
    assert "https://harbor.example.com/hook?a=1&b=<i>" in text_of(page)
    assert "<i>" not in page.text
    assert "Undeliverable 1" in text_of(page)
    answer = await admin.post(f"/console/practice/webhooks/{endpoint_id}/replay")
    assert answer.status_code == 303
    (delivery,) = await list_deliveries(world.database, endpoint_id, None, 10)
    assert (delivery.state, delivery.attempts) == ("pending", 0)


async def test_an_endpoint_is_paused_and_resumed_under_the_staff_id(world: World, admin: httpx.AsyncClient) -> None:
    endpoint_id = await endpoint(world)
    path = f"/console/practice/webhooks/{endpoint_id}"
    await admin.post(f"{path}/pause")
    assert (await show_endpoint(world.database, endpoint_id)).pause_reason == "operator"
    assert "manually" in text_of(await admin.get("/console/practice/webhooks"))
    await admin.post(f"{path}/resume")
    assert (await show_endpoint(world.database, endpoint_id)).paused_at is None
    mine = [record for record in await audited(world) if "webhook" in record[0]]
    assert mine == [
        (f"console.{action}_webhook", "executed", admin.headers[TEST_STAFF]) for action in ("pause", "resume")
    ]


async def test_another_practices_endpoint_does_not_exist(world: World, admin: httpx.AsyncClient) -> None:
    theirs = await endpoint(world, "other")
    assert "other.example.com" not in (await admin.get("/console/practice/webhooks")).text
    for action in ("replay", "pause", "resume", "test", "rotate", "remove"):
        for endpoint_id in (theirs, "whk_1_0000000000000000", "nothing"):
            answer = await admin.post(f"/console/practice/webhooks/{endpoint_id}/{action}")
            assert answer.status_code == 404, (action, endpoint_id)
    assert (await show_endpoint(world.database, theirs)).paused_at is None
    assert (await show_endpoint(world.database, theirs)).dead == 1


async def test_staff_reach_nothing_of_it_whatever_a_page_forgets(world: World, staff: httpx.AsyncClient) -> None:
    endpoint_id = await endpoint(world)
    assert (await staff.get("/console/practice/webhooks")).status_code == 403
    assert (await staff.post(f"/console/practice/webhooks/{endpoint_id}/pause")).status_code == 403
