"""Redirect URIs of applications: which may be registered, and which one a request may name."""

import re
from urllib.parse import SplitResult, parse_qsl, urlencode, urlsplit

MAX_URI_LENGTH = 512
LOOPBACK = frozenset(("127.0.0.1", "::1", "localhost"))
_CHARACTERS = re.compile(r"[!#-;=?-\[\]_a-z~%]+\Z")  # printable ASCII without quotes, <, >, \, ^, `, {, | and }
_AUTHORITY = re.compile(r"([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]+)?\Z")  # it is written into a header, too
_NUMBER = re.compile(r"(0x[0-9a-f]*|[0-9]+)\Z")  # as the last label: browsers take the host for an IPv4 address
_NATIVE = ("cursor://anysphere.cursor-mcp/",)  # applications that browsers open by a scheme of their own


def is_allowed(uri: str) -> bool:
    """Whether it is https, http on the loopback interface, or a native application that is named here."""
    parts = _split(uri)
    if parts is None:
        return False
    if parts.scheme == "http":
        return parts.hostname in LOOPBACK
    return parts.scheme == "https" or uri.startswith(_NATIVE)


def is_registered(uri: str, registered: tuple[str, ...]) -> bool:
    """Whether it equals a registered one. On the loopback interface the port may differ (RFC 8252)."""
    return is_allowed(uri) and (uri in registered or _without_port(uri) in {_without_port(each) for each in registered})


def is_local(uri: str) -> bool:
    """Whether the answer goes to a program on the machine of the browser, which could be any program."""
    return urlsplit(uri).scheme != "https"


def names_operator(host: str) -> bool:
    """Whether the host of an answer says who gets it: not on the machine of the browser, where any program could.

    Addresses name nobody, and browsers read many spellings of the loopback interface's.
    """
    last = host.rstrip(".").rpartition(".")[2]
    is_address = ":" in host or _NUMBER.match(last) is not None
    return not (is_address or last in ("", "localhost") or host in {host_of(each) for each in _NATIVE})


def host_of(uri: str) -> str:
    return urlsplit(uri).hostname or ""


def source_of(uri: str) -> str:
    """The source expression of a content security policy that allows it."""
    parts = urlsplit(uri)
    return f"{parts.scheme}://{parts.netloc}" if parts.scheme in ("http", "https") else f"{parts.scheme}:"


def with_parameters(uri: str, **parameters: str | None) -> str:
    """The address with these parameters added to its query."""
    parts = urlsplit(uri)
    query = parse_qsl(parts.query, keep_blank_values=True)
    query += [(name, value) for name, value in parameters.items() if value is not None]
    return parts._replace(query=urlencode(query)).geturl()


def _split(uri: str) -> SplitResult | None:
    if len(uri) > MAX_URI_LENGTH or not _CHARACTERS.match(uri):
        return None
    try:
        parts = urlsplit(uri)
        _ = parts.port
    except ValueError:
        return None
    return parts if _AUTHORITY.match(parts.netloc) and "#" not in uri else None


def _without_port(uri: str) -> tuple[str | None, str, str] | str:
    parts = urlsplit(uri)
    if parts.scheme == "http" and parts.hostname in LOOPBACK:
        return parts.hostname, parts.path, parts.query
    return uri
