"""The OAuth door with a practice and a client behind it, and the form that its refusals have."""

import base64
from typing import Any

import httpx
from starlette.applications import Starlette
from starlette.requests import Request

from frontdesk.access.clients.authentication import Authenticator
from frontdesk.access.clients.records import ClientRecord
from frontdesk.access.clients.secrets import AuthenticatedClient, authenticate
from frontdesk.access.clients.tokens import Tokens
from frontdesk.access.keys.ring import KeyRing
from frontdesk.doors.oauth import Form, oauth_routes
from frontdesk.settings import Settings
from frontdesk.store.database import Database
from frontdesk.web.request_log import RequestLog, log_line

URL = "https://desk.example"
HELD = ("practices:read", "slots:read", "appointments:read")


async def no_assistants(_request: Request, _form: Form) -> dict[str, Any]:
    raise AssertionError("only client credentials are exchanged here")


class Desk:
    def __init__(self, database: Database, ring: KeyRing, client: ClientRecord, secret: str) -> None:
        settings = Settings(base_url=URL)
        self.database = database
        self.ring = ring
        self.tokens = Tokens(ring, settings)
        self.authenticator = Authenticator(database, self.tokens)
        self.client_id = client.client_id
        self.secret = secret
        self.routes = oauth_routes(self.authenticate, no_assistants, self.tokens, ring, settings, RequestLog(log_line))
        self.http = httpx.AsyncClient(transport=httpx.ASGITransport(app=Starlette(routes=self.routes)), base_url=URL)

    async def authenticate(self, client_id: str, secret: str, _address: str | None) -> AuthenticatedClient:
        return await authenticate(self.database, self.ring, client_id, secret)

    def form(self, **changes: str | None) -> dict[str, str]:
        form = {
            "grant_type": "client_credentials",
            "client_id": self.client_id,
            "client_secret": self.secret,
            **changes,
        }
        return {name: value for name, value in form.items() if value is not None}

    def basic(self, client_id: str | None = None, secret: str | None = None) -> dict[str, str]:
        text = f"{client_id or self.client_id}:{secret or self.secret}"
        return {"Authorization": "Basic " + base64.b64encode(text.encode()).decode()}

    async def token(self, headers: dict[str, str] | None = None, **changes: str | None) -> httpx.Response:
        return await self.http.post("/oauth/token", data=self.form(**changes), headers=headers)

    async def raw(self, body: str | bytes, **headers: str) -> httpx.Response:
        kind = {"content-type": "application/x-www-form-urlencoded"}
        return await self.http.post("/oauth/token", content=body, headers={**kind, **headers})


def check_refusal(answer: httpx.Response, status: int, code: str, error: str) -> dict[str, Any]:
    """A problem document and an OAuth error at once."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["cache-control"] == "no-store"
    body: dict[str, Any] = answer.json()
    assert (body["status"], body["code"], body["error"]) == (status, code, error)
    assert body["type"] == f"{URL}/errors.html#{code}"
    assert body["error_description"] == body["detail"]
    assert body["requestId"] == answer.headers["x-svc-trace-id"]
    assert ("www-authenticate" in answer.headers) == (status == 401)
    return body
