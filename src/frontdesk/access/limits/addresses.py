"""Addresses of callers: what counts as one caller, and which peers are trusted proxies."""

from collections.abc import Callable, Iterable
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network


@lru_cache(maxsize=1024)
def network_of(address: str | None) -> str:
    """The address; for IPv6 its /64, because one host can use all of it. Empty if it is none."""
    found = _parsed(address or "")
    if found is None:
        return ""
    return str(int(found) >> 64 if isinstance(found, IPv6Address) else found)


def is_address(text: str) -> bool:
    return _parsed(text) is not None


def trusted_proxy_check(networks: Iterable[str]) -> Callable[[str], bool]:
    """Whether an address is one of the trusted proxies."""
    trusted = tuple(ip_network(network) for network in networks)

    @lru_cache(maxsize=1024)
    def trusts(address: str) -> bool:
        found = _parsed(address)
        return found is not None and any(found in network for network in trusted)

    return trusts


def _parsed(text: str) -> IPv4Address | IPv6Address | None:
    """An IPv4 client of an IPv6 socket has an address that is mapped into IPv6."""
    try:
        found = ip_address(text)
    except ValueError:
        return None
    return (found.ipv4_mapped or found) if isinstance(found, IPv6Address) else found
