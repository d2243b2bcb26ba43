"""Where passkeys belong: browsers offer them at one domain only."""

from ipaddress import ip_address
from typing import NamedTuple
from urllib.parse import urlsplit


class RelyingParty(NamedTuple):
    id: str
    origin: str


def relying_party_of(public_url: str) -> RelyingParty | None:
    """The relying party of an address. None where browsers have no passkeys: at an IP address, and over http except on
    localhost."""
    parts = urlsplit(public_url)
    host = parts.hostname or ""
    is_local = host == "localhost" or host.endswith(".localhost")
    if _is_address(host) or not (parts.scheme == "https" or is_local):
        return None
    port = "" if parts.port in (None, {"https": 443, "http": 80}[parts.scheme]) else f":{parts.port}"
    return RelyingParty(host, f"{parts.scheme}://{host}{port}")


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
