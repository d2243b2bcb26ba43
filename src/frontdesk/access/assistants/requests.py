"""Authorization requests (RFC 6749, RFC 7636, RFC 8707) of applications, read and checked."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from frontdesk.access.assistants.applications import Application
from frontdesk.access.assistants.redirects import is_registered
from frontdesk.access.clients.resources import MCP_RESOURCE, resources_of
from frontdesk.access.clients.scopes import SCOPES

PARAMETERS = (
    "client_id", "redirect_uri", "response_type", "code_challenge", "code_challenge_method", "scope", "state",
    "resource", "prompt",
)  # fmt: skip
Parameters = Mapping[str, Sequence[str]]
_CHALLENGE = re.compile(r"[\w-]{43}\Z", re.ASCII)
_MAX_STATE_LENGTH = 2000


class RequestRefused(Exception):
    """An error for the application. `error` is a code of RFC 6749."""

    def __init__(self, error: str, description: str) -> None:
        super().__init__(description)
        self.error = error


@dataclass(frozen=True, slots=True)
class AuthorizationRequest:
    application: Application
    redirect_uri: str
    state: str | None
    challenge: str
    scopes: tuple[str, ...]  # those that were asked for and exist


def return_address(parameters: Parameters, application: Application) -> str | None:
    """Where answers go; None if the request names no address that the application has registered."""
    given = parameters.get("redirect_uri", ())
    return given[0] if len(given) == 1 and is_registered(given[0], application.redirect_uris) else None


def state_of(parameters: Parameters) -> str | None:
    given = parameters.get("state", ())
    return given[0] if len(given) == 1 and len(given[0]) <= _MAX_STATE_LENGTH else None


def read_request(
    parameters: Parameters, application: Application, redirect_uri: str, public_url: str
) -> AuthorizationRequest:
    repeated = [name for name in PARAMETERS if name != "resource" and len(parameters.get(name, ())) > 1]
    if repeated:
        raise RequestRefused("invalid_request", f"{repeated[0]} was sent more than once.")
    given = {name: values[0] for name, values in parameters.items() if values}
    if given.get("response_type") != "code":
        raise RequestRefused("unsupported_response_type", "response_type must be code.")
    if given.get("code_challenge_method") != "S256" or not _CHALLENGE.match(given.get("code_challenge", "")):
        raise RequestRefused("invalid_request", "A code_challenge with code_challenge_method S256 is required.")
    if "state" in given and state_of(parameters) is None:
        raise RequestRefused("invalid_request", f"state must have at most {_MAX_STATE_LENGTH} characters.")
    if given.get("prompt") == "none":
        raise RequestRefused("consent_required", "A person has to agree.")
    check_resources(parameters.get("resource", ()), public_url)
    return AuthorizationRequest(
        application, redirect_uri, given.get("state"), given["code_challenge"], _scopes(given.get("scope", ""))
    )


def check_resources(resources: Sequence[str], public_url: str) -> None:
    """Refuses other resources than the MCP door, for which every token of an assistant is."""
    if resources_of(resources, public_url, (MCP_RESOURCE,)) is None:
        raise RequestRefused("invalid_target", f"The resource must be {public_url}{MCP_RESOURCE}.")


def _scopes(requested: str) -> tuple[str, ...]:
    """Scopes that do not exist here, such as offline_access, are ignored; without any, all are asked for."""
    wanted = set(requested.split())
    found = tuple(scope for scope in SCOPES if scope in wanted or not wanted)
    if not found and "offline_access" in wanted:
        return SCOPES
    if not found:
        raise RequestRefused("invalid_scope", "None of the requested scopes exists.")
    return found
