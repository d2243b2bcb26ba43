"""The endpoints of assistants: their grants at the token endpoint, registration (RFC 7591) and revocation (RFC 7009).

Staff agree to a connection at the console, which also has the authorization endpoint.
"""

from collections.abc import Callable
from datetime import datetime

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from frontdesk.access.assistants.applications import ApplicationError, Applications
from frontdesk.access.assistants.grants import AssistantGrants, Granted, GrantRefused, ScopeRefused
from frontdesk.access.assistants.requests import RequestRefused, check_resources
from frontdesk.access.limits.failed_attempts import FailedAttempts
from frontdesk.domain.errors import Problem
from frontdesk.doors.oauth import NOT_STORED, Form, answer, read_form, refused, token_body, with_problems
from frontdesk.engine.json_documents import UnreadableJson, read_json
from frontdesk.settings import Settings
from frontdesk.web.bodies import read_body, require_json_body
from frontdesk.web.http_request import address_of, request_of
from frontdesk.web.request_log import RequestLog

_INVALID_GRANT = "The code or refresh token is not valid, or was used before."


class AssistantDoor:
    def __init__(
        self,
        applications: Applications,
        grants: AssistantGrants,
        attempts: FailedAttempts,
        settings: Settings,
        clock: Callable[[], datetime],
    ) -> None:
        self._applications = applications
        self._grants = grants
        self._attempts = attempts
        self._settings = settings
        self._clock = clock

    def routes(self, requests: RequestLog) -> list[Route]:
        register = with_problems("register", self._register, self._settings, requests)
        revoke = with_problems("revoke", self._revoke, self._settings, requests)
        return [
            Route("/oauth/register", register, methods=["POST"]),
            Route("/oauth/revoke", revoke, methods=["POST"]),
        ]

    async def exchange(self, request: Request, form: Form) -> dict[str, object]:
        """The answer of the token endpoint to a code or a refresh token."""
        has_code = form["grant_type"] == ["authorization_code"]
        needed = ("client_id", "code", "code_verifier") if has_code else ("client_id", "refresh_token")
        missing = [name for name in needed if name not in form]
        if missing:
            raise refused("invalid_request", f"Missing parameters: {', '.join(missing)}.", *missing, rule="required")
        application_id = form["client_id"][0]
        if request.headers.get("authorization", "").lower().startswith("basic") or "client_secret" in form:
            raise _invalid_client("Applications that act for staff have no secret.")
        try:
            check_resources(form.get("resource", ()), self._settings.public_url)
        except RequestRefused as error:
            raise refused(error.error, str(error), "resource") from None
        presented = form["code" if has_code else "refresh_token"][0]

        async def attempt() -> Granted:
            # Counted first, so that a refusal does not use up the code.
            client_id = await self._grants.client_of(presented)
            if client_id is not None:
                await self._attempts.count_token(client_id, 0)
            try:
                if has_code:
                    return await self._grants.redeem(
                        form["code"][0],
                        application_id=application_id,
                        verifier=form["code_verifier"][0],
                        redirect_uri=form.get("redirect_uri", [None])[0],
                        request_id=request_of(request.scope).request_id,
                    )
                return await self._grants.refresh(
                    form["refresh_token"][0],
                    application_id=application_id,
                    scope=form.get("scope", [None])[0],
                    request_id=request_of(request.scope).request_id,
                )
            except ScopeRefused as error:
                raise refused("invalid_scope", "None of these scopes was granted.", "scope") from error
            except GrantRefused as error:
                raise Problem("unauthorized") from error  # counted as a failed attempt

        try:
            granted = await self._attempts.guard(
                "token", application_id, address_of(request), attempt, secret=presented
            )
        except Problem as problem:
            if problem.code != "unauthorized":
                raise
            if not await self._grants.exists(application_id):
                raise _invalid_client("There is no such client: it may have to register again.") from problem
            raise refused("invalid_grant", _INVALID_GRANT) from problem
        request.state.client_id = granted.client_id
        return token_body(granted.access, granted.access.scopes) | {"refresh_token": granted.refresh_token}

    async def _register(self, request: Request) -> Response:
        http = request_of(request.scope)
        body = await read_body(http, request.receive)
        require_json_body(http.headers.get(b"content-type"), body)
        try:
            description, _ = read_json(body)
        except UnreadableJson:
            description = None
        if not isinstance(description, dict):
            raise refused("invalid_client_metadata", "The body must be a JSON object.", "$")
        await self._attempts.count_registration(address_of(request))
        now = self._clock()
        try:
            application = await self._applications.register(description, now)
        except ApplicationError as error:
            raise refused(error.error, str(error)) from None
        registered = {
            "client_id": application.application_id,
            "client_id_issued_at": int(now.timestamp()),
            "client_name": application.name,
            "redirect_uris": list(application.redirect_uris),
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
        }
        return answer(request, registered, NOT_STORED, status=201)

    async def _revoke(self, request: Request) -> Response:
        form = await read_form(request)
        if "token" not in form:
            raise refused("invalid_request", "Missing parameters: token.", "token", rule="required")
        await self._attempts.count_revocation(address_of(request))
        try:
            await self._grants.revoke(
                form["token"][0],
                application_id=form.get("client_id", [None])[0],
                request_id=request_of(request.scope).request_id,
            )
        except GrantRefused:
            raise refused("unsupported_token_type", "Only tokens of this client's assistants can be revoked.") from None
        return answer(request, {}, NOT_STORED)


def _invalid_client(detail: str) -> Problem:
    return Problem("unauthorized", detail)
