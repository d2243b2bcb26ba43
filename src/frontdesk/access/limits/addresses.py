"""Addresses of callers: what counts as one caller, and which peers are trusted proxies."""

from collections.abc import Callable, Iterable
from functools import lru_cache
from ipaddress import IPv6Address, ip_address, ip_network


@lru_cache(maxsize=1024)
def network_of(address: str | None) -> str:
    """The address; for IPv6 its /64, because one host can use all of it. Empty if it is none."""
    try:
        found = ip_address(address or "")
    except ValueError:
        return ""
    if isinstance(found, IPv6Address):
        return str(found.ipv4_mapped or int(found) >> 64)
    return str(found)


def is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def trusting(networks: Iterable[str]) -> Callable[[str], bool]:
    """Whether an address is one of the trusted proxies."""
    trusted = tuple(ip_network(network) for network in networks)

    @lru_cache(maxsize=1024)
    def trusts(address: str) -> bool:
        return is_address(address) and any(ip_address(address) in network for network in trusted)

    return trusts
