"""An application that connects to a world as the specification says, and a browser whose owner agrees."""

import base64
import hashlib
import re
import secrets
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx

from frontdesk.access.clients.records import trust_client
from tests.console.signing_in import browser_at, csrf_in
from tests.support.world import World

REDIRECT = "https://assistant.example/callback"
RESOURCE = "http://test/mcp"
EVERYTHING = ("appointments", "patients", "records")
_REQUEST = re.compile(r'name="request" value="([^"]*)"')


@dataclass
class Assistant:
    """What an application keeps between its requests."""

    http: httpx.AsyncClient
    client_id: str
    redirect_uri: str = REDIRECT
    state: str = "xyz"
    verifier: str = field(default_factory=lambda: secrets.token_urlsafe(48))
    tokens: dict[str, Any] = field(default_factory=dict)

    @property
    def challenge(self) -> str:
        return base64.urlsafe_b64encode(hashlib.sha256(self.verifier.encode()).digest()).rstrip(b"=").decode()

    def request(self, **changes: Any) -> dict[str, Any]:
        """The parameters of an authorization request."""
        given = {
            "response_type": "code",
            "client_id": self.client_id,
            "redirect_uri": self.redirect_uri,
            "state": self.state,
            "code_challenge": self.challenge,
            "code_challenge_method": "S256",
            "resource": RESOURCE,
            **changes,
        }
        return {name: value for name, value in given.items() if value is not None}

    async def redeem(self, code: str, **changes: str | None) -> httpx.Response:
        form = {
            "grant_type": "authorization_code",
            "client_id": self.client_id,
            "code": code,
            "code_verifier": self.verifier,
            "redirect_uri": self.redirect_uri,
            "resource": RESOURCE,
            **changes,
        }
        return await self.http.post("/oauth/token", data=given(form))

    async def refresh(self, token: str | None = None, **changes: str | None) -> httpx.Response:
        form = {
            "grant_type": "refresh_token",
            "client_id": self.client_id,
            "refresh_token": token or self.tokens["refresh_token"],
            "resource": RESOURCE,
            **changes,
        }
        return await self.http.post("/oauth/token", data=given(form))

    def use(self, tokens: dict[str, Any]) -> None:
        self.tokens = tokens
        self.http.headers["Authorization"] = f"Bearer {tokens['access_token']}"


def given(form: dict[str, str | None]) -> dict[str, str]:
    return {name: value for name, value in form.items() if value is not None}


async def registered(world: World, *redirects: str, name: str = "Claude") -> Assistant:
    http = browser_at(world, f"198.51.{secrets.randbelow(256)}.{secrets.randbelow(256)}")  # each has limits of its own
    description = {"client_name": name, "redirect_uris": list(redirects or (REDIRECT,)), "scope": "openid"}
    answer = await http.post("/oauth/register", json=description)
    assert answer.status_code == 201, answer.text
    return Assistant(http, answer.json()["client_id"], redirects[0] if redirects else REDIRECT)


async def consent_page(browser: httpx.AsyncClient, assistant: Assistant, **changes: str | None) -> httpx.Response:
    """Where the authorization endpoint leads a browser that is signed in."""
    answer = await browser.get("/oauth/authorize", params=assistant.request(**changes))
    assert answer.status_code == 303, answer.text
    return await browser.get(answer.headers["location"])


def request_in(page: str) -> str:
    """What the application asks for, as the form of the consent page repeats it."""
    found = _REQUEST.search(page)
    assert found is not None, page
    return found.group(1).replace("&amp;", "&")


async def decide(browser: httpx.AsyncClient, page: str, decision: str, *groups: str, pin: str = "") -> httpx.Response:
    """Presses a button of the consent page with these boxes ticked."""
    fields = [("csrf", csrf_in(page)), ("request", request_in(page)), ("decision", decision), ("pin", pin)]
    body = urlencode([*fields, *(("groups", group) for group in groups)])
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    return await browser.post("/console/connect", content=body, headers=kind)


def answer_of(response: httpx.Response, redirect_uri: str = REDIRECT) -> dict[str, str]:
    """The parameters with which a browser returns to the application."""
    assert response.status_code == 303, response.text
    location = response.headers["location"]
    assert location.startswith(redirect_uri), location
    return {name: values[0] for name, values in parse_qs(urlsplit(location).query).items()}


async def agreed(browser: httpx.AsyncClient, assistant: Assistant, *groups: str, **changes: str | None) -> str:
    """A code, after the owner of the browser has agreed."""
    page = await consent_page(browser, assistant, **changes)
    assert page.status_code == 200, page.text
    return answer_of(await decide(browser, page.text, "connect", *groups), assistant.redirect_uri)["code"]


async def connected(
    world: World,
    browser: httpx.AsyncClient,
    *groups: str,
    name: str = "Claude",
    trusted_to_ask: bool = False,
    **changes: str | None,
) -> Assistant:
    """An assistant that calls with a token for the owner of the browser."""
    assistant = await registered(world, name=name)
    answer = await assistant.redeem(await agreed(browser, assistant, *(groups or EVERYTHING), **changes))
    assert answer.status_code == 200, answer.text
    assistant.use(answer.json())
    if trusted_to_ask:
        await trust_client(world.database, await client_of(world, assistant))
    return assistant


async def client_of(world: World, assistant: Assistant) -> str:
    """The client through which the application acts, if one staff member has connected it."""
    found: str = await world.database.fetchval(
        "SELECT client_id FROM client WHERE application_id = $1", assistant.client_id
    )
    return found
