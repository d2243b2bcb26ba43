"""What the OAuth door publishes, and that clients nobody here wrote find their way with it."""

from typing import Literal

import httpx2
import jwt
import pytest
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.shared.auth import OAuthClientInformationFull, OAuthMetadata, OAuthToken, ProtectedResourceMetadata
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from frontdesk.access.clients.scopes import SCOPES
from frontdesk.domain.errors import Problem
from frontdesk.settings import Settings
from frontdesk.web.responses import problem_response, www_authenticate
from tests.doors.oauth_desk import HELD, URL, Desk

TRACE = "0af7651916cd43dd8448eb211c80319c"
WELL_KNOWN = (
    "/.well-known/jwks.json",
    "/.well-known/oauth-authorization-server",
    "/.well-known/oauth-protected-resource",
    "/.well-known/oauth-protected-resource/api",
    "/.well-known/oauth-protected-resource/mcp",
)


async def test_the_callers_trace_id_is_kept_on_every_answer(desk: Desk) -> None:
    headers = {"traceparent": f"00-{TRACE}-b7ad6b7169203331-01"}
    answers = [await desk.token(headers), await desk.token(headers, client_secret="wrong")]
    answers += [await desk.http.get(path, headers=headers) for path in WELL_KNOWN]
    assert {answer.headers["x-svc-trace-id"] for answer in answers} == {TRACE}
    fresh = [(await desk.token()).headers["x-svc-trace-id"] for _ in range(2)]
    assert len({TRACE, *fresh}) == 3


async def test_published_documents_may_be_kept_for_five_minutes(desk: Desk) -> None:
    for path in WELL_KNOWN:
        answer = await desk.http.get(path)
        assert answer.status_code == 200
        assert answer.headers["content-type"] == "application/json"
        assert answer.headers["cache-control"] == "public, max-age=300"


async def test_a_token_verifies_with_the_published_keys_alone(desk: Desk) -> None:
    token = (await desk.token()).json()["access_token"]
    keys = jwt.PyJWKSet.from_dict((await desk.http.get("/.well-known/jwks.json")).json())
    key = keys[jwt.get_unverified_header(token)["kid"]]
    claims = jwt.decode(token, key, algorithms=["EdDSA"], audience=URL, issuer=URL)
    assert claims["sub"] == desk.client_id


async def test_the_server_metadata_leads_to_the_token_endpoint_and_the_keys(desk: Desk) -> None:
    body = (await desk.http.get("/.well-known/oauth-authorization-server")).json()
    assert body["issuer"] == URL
    assert body["grant_types_supported"] == ["client_credentials", "authorization_code", "refresh_token"]
    assert body["token_endpoint_auth_methods_supported"] == [
        "client_secret_post",
        "client_secret_basic",
        "private_key_jwt",
        "none",
    ]
    assert body["token_endpoint_auth_signing_alg_values_supported"] == ["RS384", "ES384"]
    assert body["scopes_supported"] == list(SCOPES)
    assert (await desk.http.get(body["jwks_uri"])).status_code == 200
    answer = await desk.http.post(body["token_endpoint"], data=desk.form())
    assert answer.status_code == 200


async def test_the_official_mcp_client_can_read_the_metadata(desk: Desk) -> None:
    server = await desk.http.get("/.well-known/oauth-authorization-server")
    assert str(OAuthMetadata.model_validate_json(server.content).token_endpoint) == f"{URL}/oauth/token"
    for path in ("", "/api", "/mcp"):
        answer = await desk.http.get(f"/.well-known/oauth-protected-resource{path}")
        resource = ProtectedResourceMetadata.model_validate_json(answer.content)
        assert str(resource.resource) == f"{URL}{path}"
        assert [str(address) for address in resource.authorization_servers] == [URL]
        assert resource.scopes_supported == list(SCOPES)
        assert resource.bearer_methods_supported == ["header"]


class Memory:
    """Token storage of a client that has just been installed."""

    def __init__(self) -> None:
        self.tokens: OAuthToken | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return None

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        raise AssertionError("nobody registers here")


@pytest.mark.parametrize("method", ["client_secret_basic", "client_secret_post"])
async def test_the_official_mcp_client_gets_in_knowing_only_the_address_and_its_credentials(
    desk: Desk, method: Literal["client_secret_basic", "client_secret_post"]
) -> None:
    settings = Settings(base_url=URL)

    async def protected(request: Request) -> Response:
        try:
            token = request.headers.get("authorization", "").removeprefix("Bearer ")
            caller = await desk.authenticator.identify(token, "/mcp")
        except Problem as problem:
            challenge = {"WWW-Authenticate": www_authenticate(settings, resource="/mcp")}
            return problem_response(problem, settings, None, challenge)
        return Response(caller.client_id)

    app = Starlette(routes=[*desk.routes, Route("/mcp", protected, methods=["POST"])])
    memory = Memory()
    provider = ClientCredentialsOAuthProvider(
        f"{URL}/mcp", memory, desk.client_id, desk.secret, token_endpoint_auth_method=method, issuer=URL
    )
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), auth=provider) as http:
        answer = await http.post(f"{URL}/mcp", json={})
    assert (answer.status_code, answer.text) == (200, desk.client_id)
    assert memory.tokens is not None
    assert memory.tokens.scope == " ".join(HELD)
