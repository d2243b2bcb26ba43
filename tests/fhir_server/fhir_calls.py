"""What the tests of the FHIR server share: searches, pages and problems."""

from typing import Any

import httpx

BASE = "/fhir/R4"


def issue(answer: httpx.Response, status: int, code: str, kind: str) -> dict[str, Any]:
    """The first issue of an OperationOutcome with that status, code of ours and issue type."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"].startswith("application/fhir+json")
    body = answer.json()
    assert body["resourceType"] == "OperationOutcome"
    first: dict[str, Any] = body["issue"][0]
    assert (first["severity"], first["code"]) == ("error", kind), first
    assert first["details"]["coding"] == [{"system": "http://test/errors.html", "code": code}]
    return first


async def bundle(client: httpx.AsyncClient, search: str) -> dict[str, Any]:
    """The Bundle of a search in which every parameter is supported."""
    address = search if search.startswith("http") else f"{BASE}/{search}"
    answer = await client.get(address, headers={"Prefer": "handling=strict"})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    assert found["resourceType"] == "Bundle"
    return found


def resources(found: dict[str, Any], mode: str = "match") -> list[dict[str, Any]]:
    return [each["resource"] for each in found.get("entry", ()) if each["search"]["mode"] == mode]


async def ids(client: httpx.AsyncClient, search: str) -> list[str]:
    return [resource["id"] for resource in resources(await bundle(client, search))]


async def every_page(client: httpx.AsyncClient, search: str) -> list[dict[str, Any]]:
    found, collected = await bundle(client, search), list[dict[str, Any]]()
    while True:
        collected += resources(found)
        following = [link["url"] for link in found["link"] if link["relation"] == "next"]
        if not following:
            return collected
        found = await bundle(client, following[0])
