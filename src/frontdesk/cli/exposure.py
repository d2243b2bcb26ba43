"""Checks what the service exposes to others: `doctor` reports a problem, and `serve` warns of it."""

import socket
from ipaddress import ip_address
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from frontdesk.settings import Settings

Finding = tuple[Literal["ok", "warning", "failed", "skipped"], str]


def warnings(settings: "Settings") -> list[str]:
    """What `serve` warns of when it starts."""
    return [detail for state, detail in (network(settings),) if state == "failed"]


def network(settings: "Settings") -> Finding:
    """Whether tokens and patient data can be read on their way."""
    if _is_loopback(settings.host):
        return "ok", f"only this machine can connect to {settings.host}"
    if settings.trusted_proxies and settings.public_url.startswith("https://"):
        return "ok", "the proxies of FRONTDESK_TRUSTED_PROXIES terminate TLS"
    if settings.insecure_http:
        return "warning", f"plain HTTP on {settings.host}, as FRONTDESK_INSECURE_HTTP allows"
    return "failed", (
        f"plain HTTP on {settings.host}: secrets, tokens and patient data can be read on their way. Terminate TLS at a "
        "reverse proxy and set FRONTDESK_TRUSTED_PROXIES and an https FRONTDESK_BASE_URL, or accept plain HTTP with "
        "--insecure-http or FRONTDESK_INSECURE_HTTP=true"
    )


def _is_loopback(host: str) -> bool:
    """A name counts if all of its addresses do."""
    found = socket.getaddrinfo(host or None, 0, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    return all(ip_address(str(address[0]).partition("%")[0]).is_loopback for *_, address in found)
