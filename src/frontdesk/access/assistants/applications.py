"""Applications that ask staff for access: self-registered (RFC 7591), or described by a document at their id."""

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import urlsplit

from frontdesk.access.assistants.redirects import MAX_URI_LENGTH, host_of, is_allowed, is_local
from frontdesk.domain.errors import Problem
from frontdesk.domain.ids import APPLICATION_FORM, random_base62
from frontdesk.domain.text import character_error
from frontdesk.store.database import Database

UNUSED_LIFETIME = timedelta(hours=24)  # of a registration that nobody has agreed to
REGISTERED = re.compile(rf"{APPLICATION_FORM}\Z")
_MAX_NAME_LENGTH = 100
_MAX_REDIRECTS = 3  # and as many of the machine of the browser, which has three names
_MAX_REGISTRATIONS = 1000  # a day
_REGISTER = """
INSERT INTO application (application_id, name, redirect_uris, registered_at)
SELECT $1, $2, $3, $4 WHERE (SELECT count(*) FROM application WHERE registered_at > $5) < $6 RETURNING true
"""
_FIND = "SELECT application_id, name, redirect_uris FROM application WHERE application_id = $1"
_PRUNE = """
DELETE FROM application WHERE application_id = ANY (ARRAY(
    SELECT a.application_id FROM application a
    WHERE a.registered_at < $1 AND NOT EXISTS (SELECT FROM client c WHERE c.application_id = a.application_id)
    LIMIT $2)) RETURNING true
"""


class ApplicationError(Exception):
    """The description of an application is not acceptable. `error` is a code of RFC 7591."""

    def __init__(self, error: str, description: str) -> None:
        super().__init__(description)
        self.error = error


class DocumentUnavailable(Exception):
    """The document at a client id could not be fetched, or is not acceptable; the message is one sentence."""


@dataclass(frozen=True, slots=True)
class Application:
    application_id: str
    name: str
    redirect_uris: tuple[str, ...]

    @property
    def document_host(self) -> str | None:
        """The host that vouches for the description; None if the application has registered itself."""
        return urlsplit(self.application_id).hostname if is_document(self.application_id) else None


FetchDocument = Callable[[str], Awaitable[Mapping[str, object]]]


class Applications:
    def __init__(self, database: Database, fetch_document: FetchDocument | None) -> None:
        """`fetch_document` gets a client id metadata document; None where these are turned off."""
        self._database = database
        self._fetch_document = fetch_document

    async def register(self, description: Mapping[str, object], now: datetime) -> Application:
        application_id = "app_" + random_base62(22)
        application = _described(application_id, description)
        redirects, since = list(application.redirect_uris), now - timedelta(days=1)
        values = (application_id, application.name, redirects, now, since, _MAX_REGISTRATIONS)
        if await self._database.write(_REGISTER, *values) is None:
            raise Problem("rate_limited", "Too many applications have registered today.", retry_after=3600)
        return application

    async def find(self, application_id: str) -> Application | None:
        """Finds an application by its id. None if there is none; DocumentUnavailable if its document cannot be used."""
        if is_document(application_id):
            return None if self._fetch_document is None else await self._documented(application_id)
        if not REGISTERED.match(application_id):
            return None
        row = await self._database.fetchrow(_FIND, application_id)
        return None if row is None else Application(row["application_id"], row["name"], tuple(row["redirect_uris"]))

    async def _documented(self, url: str) -> Application:
        assert self._fetch_document is not None
        check_document_url(url)
        document = await self._fetch_document(url)
        if document.get("client_id") != url:
            raise DocumentUnavailable("The document at the client id describes another client.")
        method = document.get("token_endpoint_auth_method", "none")
        if method != "none" or "client_secret" in document:
            raise DocumentUnavailable("The application authenticates in a way that is not supported here.")
        if not isinstance(document.get("client_name"), str):
            raise DocumentUnavailable("The document at the client id has no client_name.")
        try:
            return _described(url, document)
        except ApplicationError as error:
            raise DocumentUnavailable(str(error)) from None


async def prune_applications(database: Database, now: datetime, limit: int) -> int:
    """Removes at most `limit` registrations that nobody has agreed to in time; returns how many."""
    return len(await database.fetch(_PRUNE, now - UNUSED_LIFETIME, limit))


def is_document(application_id: str) -> bool:
    return application_id.startswith("https://")


def check_document_url(url: str) -> None:
    """The rules for a client id that is a URL."""
    parts = urlsplit(url)
    segments = parts.path.split("/")
    if not is_allowed(url) or parts.path in ("", "/") or "." in segments or ".." in segments:
        raise DocumentUnavailable("The client id is not the address of a client id metadata document.")


def _described(application_id: str, description: Mapping[str, object]) -> Application:
    redirects = description.get("redirect_uris")
    if (
        not isinstance(redirects, list)
        or not all(isinstance(uri, str) and is_allowed(uri) for uri in redirects)
        or not redirects
        or any(len(uris) > _MAX_REDIRECTS for uris in _by_place(redirects))
    ):
        raise ApplicationError(
            "invalid_redirect_uri",
            f"redirect_uris must have 1 to {_MAX_REDIRECTS} https addresses of at most {MAX_URI_LENGTH} characters, as "
            "many http addresses of the loopback interface, or both.",
        )
    for field, needed in (("grant_types", "authorization_code"), ("response_types", "code")):
        value = description.get(field)
        if value is not None and (not isinstance(value, list) or needed not in value):
            raise ApplicationError("invalid_client_metadata", f"{field} must include {needed}.")
    name = description.get("client_name") or host_of(redirects[0])
    name = name.strip() if isinstance(name, str) else ""
    if not name or len(name) > _MAX_NAME_LENGTH or character_error(name):
        raise ApplicationError(
            "invalid_client_metadata", f"client_name must be one line of 1 to {_MAX_NAME_LENGTH} characters."
        )
    return Application(application_id, name, tuple(dict.fromkeys(redirects)))


def _by_place(redirects: list[str]) -> tuple[set[str], set[str]]:
    """Those on the web, and those on the machine of the browser."""
    local = set(filter(is_local, redirects))
    return set(redirects) - local, local
