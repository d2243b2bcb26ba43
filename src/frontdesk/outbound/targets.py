"""Addresses that the service may call: public addresses over https, unless the operator allows private ones.

A name is resolved once, checked and connected to by address, which prevents DNS rebinding.
"""

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from urllib.parse import SplitResult, urlsplit

from frontdesk.host_lookups import HostLookups
from frontdesk.texts import N_, ExplainedError, Text

MAX_URL_LENGTH = 2000
NOT_PUBLIC = N_("The address must be a public address.")
_UNPRINTABLE = Text(
    "The address is at most %(maximum)s printable ASCII characters without spaces.", maximum=MAX_URL_LENGTH
)
_PORTS = {"http": 80, "https": 443}
_NAT64 = ip_network("64:ff9b::/96")
_GLOBAL_UNICAST = ip_network("2000::/3")


class TargetError(ExplainedError):
    """The target is not allowed."""


@dataclass(frozen=True, slots=True)
class Target:
    """A parsed URL."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def authority(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"


def parse_target(url: str, *, allow_private: bool) -> Target:
    parts, port = _split(url)
    if len(url) > MAX_URL_LENGTH or not url.isascii() or not url.isprintable() or " " in url or "\\" in url:
        raise TargetError(_UNPRINTABLE)
    if parts.scheme not in _PORTS or not parts.hostname:
        raise TargetError("The address must be a complete https:// URL.")
    if parts.scheme != "https" and not allow_private:
        raise TargetError("The address must start with https://.")
    if "@" in parts.netloc or parts.fragment:
        raise TargetError("The address must not contain a user name or a fragment.")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Target(parts.scheme, parts.hostname, port or _PORTS[parts.scheme], path)


async def addresses_of(target: Target, lookups: HostLookups, *, allow_private: bool) -> list[str]:
    """The host's addresses, all of them allowed. OSError if the name has none."""
    addresses = await lookups.addresses(target.host)
    if not allow_private and not all(_is_public(address) for address in addresses):
        raise TargetError(NOT_PUBLIC)
    return addresses


def _split(url: str) -> tuple[SplitResult, int | None]:
    try:
        parts = urlsplit(url)
        return parts, parts.port
    except ValueError:
        raise TargetError("The address must be a complete https:// URL.") from None


def _is_public(text: str) -> bool:
    if "%" in text:  # an address with a zone id is link-local
        return False
    address = ip_address(text)
    if isinstance(address, IPv6Address):
        embedded = _embedded(address)
        if embedded is None and address not in _GLOBAL_UNICAST:  # site-local, IPv4-compatible, translated and others
            return False
        address = embedded or address
    return address.is_global and not address.is_multicast


def _embedded(address: IPv6Address) -> IPv4Address | None:
    """The IPv4 address embedded in an IPv6 address."""
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour
