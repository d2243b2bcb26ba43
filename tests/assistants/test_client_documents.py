"""Client id metadata documents: who may be described by one, and what fetching it cannot be used for."""

import gzip
from typing import Any

import httpx
import orjson
import pytest

from frontdesk.access.assistants.applications import Applications, DocumentUnavailable
from frontdesk.outbound.checked_http import CheckedHttp
from frontdesk.outbound.client_documents import MAX_DOCUMENT_BYTES, ClientDocuments
from tests.assistants.connecting import REDIRECT, Assistant, answer_of, consent_page, decide
from tests.console.signing_in import signed_in
from tests.doors.mcp_speech import call
from tests.support.shared_database import world_of_a_module
from tests.support.world import World

world = world_of_a_module

URL = "https://assistant.example/client.json"
DOCUMENT = {"client_id": URL, "client_name": "Claude", "redirect_uris": [REDIRECT]}


class Web:
    """The internet as the fetcher sees it."""

    timeout_seconds = 1.0

    def __init__(self, **answer: Any) -> None:
        self.answer = answer
        self.asked: list[str] = []

    async def open(self, method: str, url: str, _headers: Any) -> httpx.Response:
        self.asked.append(url)
        given = {"status_code": 200, "json": DOCUMENT, **self.answer}
        if "content" in given:
            given.pop("json")
        return httpx.Response(request=httpx.Request(method, url), **given)


def documents(web: Web, seconds: list[float] | None = None) -> ClientDocuments:
    now = seconds or [0.0]
    return ClientDocuments(web, monotonic=lambda: now[0])  # type: ignore[arg-type]


async def test_staff_agree_to_an_application_with_a_document_and_see_who_vouches_for_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    web = Web()
    monkeypatch.setattr(world.service.applications, "_fetch_document", documents(web).fetch)
    assistant = Assistant(world.anonymous(), URL)
    # Nobody can make the service fetch anything without signing in.
    begun = await world.anonymous().get("/oauth/authorize", params=assistant.request())
    assert begun.status_code == 303
    assert web.asked == []
    admin = await signed_in(world, role="admin")
    page = await consent_page(admin, assistant)
    assert "a document at <code>assistant.example</code>" in page.text
    code = answer_of(await decide(admin, page.text, "connect"))["code"]
    assistant.use((await assistant.redeem(code)).json())
    assert (await call(assistant.http, "get_practice"))["isError"] is False
    assert web.asked == [URL]
    monkeypatch.setattr(world.service.applications, "_fetch_document", None)
    refused = await admin.get("/console/connect", params=assistant.request())
    assert refused.status_code == 400


@pytest.mark.parametrize(
    "changes",
    [
        {"client_id": "https://assistant.example/other.json"},
        {"client_id": URL + "/"},
        {"client_name": None},
        {"redirect_uris": []},
        {"redirect_uris": ["http://evil.example/"]},
        {"token_endpoint_auth_method": "private_key_jwt"},
        {"token_endpoint_auth_method": "client_secret_post"},
        {"client_secret": "x"},
        {"client_name": "Cla\u202eude"},
    ],
)
async def test_a_document_that_does_not_describe_its_own_address_is_refused(
    world: World, changes: dict[str, Any]
) -> None:
    web = Web(json={**DOCUMENT, **changes})
    with pytest.raises(DocumentUnavailable):
        await Applications(world.database, documents(web).fetch).find(URL)


@pytest.mark.parametrize(
    "url",
    [
        "https://assistant.example", "https://assistant.example/", "https://assistant.example/a/../client.json",
        "https://assistant.example/./client.json", "https://user@assistant.example/client.json",
        "https://assistant.example/client.json#x", "https://assistant.example\\client.json",
    ],
)  # fmt: skip
async def test_a_client_id_that_is_no_address_of_a_document_is_not_fetched(world: World, url: str) -> None:
    web = Web()
    with pytest.raises(DocumentUnavailable):
        await Applications(world.database, documents(web).fetch).find(url)
    assert web.asked == []


@pytest.mark.parametrize(
    "answer",
    [
        {"status_code": 302, "headers": {"location": "https://other.example/client.json"}},
        {"status_code": 201},
        {"status_code": 404},
        {"status_code": 500},
        {"content": b"{" + b" " * MAX_DOCUMENT_BYTES + b"}"},
        {"content": b"<html>"},
        {"content": b"[]"},
        # Compressed twice, a few kilobytes would expand to gigabytes.
        {
            "content": gzip.compress(gzip.compress(orjson.dumps(DOCUMENT))),
            "headers": {"content-encoding": "gzip, gzip"},
        },
    ],
)
async def test_only_a_small_document_with_status_200_counts_and_errors_are_not_cached(answer: dict[str, Any]) -> None:
    web = Web(**answer)
    fetcher = documents(web)
    for _ in range(2):
        with pytest.raises(DocumentUnavailable):
            await fetcher.fetch(URL)
    assert web.asked == [URL, URL]


@pytest.mark.parametrize(
    ("caching", "seconds", "asked"),
    [
        ({}, 299, 1), ({}, 301, 2),
        ({"cache-control": "max-age=3600"}, 3599, 1), ({"cache-control": "max-age=3600"}, 3601, 2),
        ({"cache-control": "max-age=99999999"}, 86_401, 2),
        ({"cache-control": "no-store"}, 0, 2), ({"cache-control": "max-age=0"}, 0, 2),
    ],
)  # fmt: skip
async def test_a_document_is_cached_as_its_headers_allow(caching: dict[str, str], seconds: float, asked: int) -> None:
    web, now = Web(headers=caching), [0.0]
    fetcher = documents(web, now)
    await fetcher.fetch(URL)
    now[0] = seconds
    await fetcher.fetch(URL)
    assert len(web.asked) == asked


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "10.0.0.1", "192.168.1.1", "169.254.169.254", "[::1]", "[fd00::1]", "[::ffff:127.0.0.1]",
             "localhost", "0.0.0.0", "100.64.0.1"]
)  # fmt: skip
async def test_a_document_at_a_special_use_address_is_never_fetched(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("frontdesk.outbound.client_documents._SECONDS", 60.0)  # looking names up takes a thread
    http = CheckedHttp(allow_private=False)
    try:
        with pytest.raises(DocumentUnavailable, match="unknown or not public"):
            await ClientDocuments(http).fetch(f"https://{host}/client.json")
    finally:
        await http.close()
