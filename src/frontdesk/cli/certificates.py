"""Checks the certificate and the key with which the service terminates TLS."""

from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

    from frontdesk.settings import Settings

_EXPIRES_SOON = timedelta(days=14)


def check_certificate(
    settings: "Settings", certificate: Path, key: Path, now: datetime
) -> tuple[Literal["ok", "warning", "failed"], str]:
    from cryptography.x509 import load_pem_x509_certificate

    from frontdesk.serving.address import ServingError
    from frontdesk.serving.tls import TlsCertificate

    try:
        TlsCertificate(certificate, key)
    except ServingError as error:
        return "failed", str(error).rstrip(".")
    if key.stat().st_mode & 0o007:
        return "failed", f"the TLS key {key} is open to every account: run chmod o= {key}"
    found = load_pem_x509_certificate(certificate.read_bytes())
    begins, ends = found.not_valid_before_utc, found.not_valid_after_utc
    if not begins <= now < ends:
        return "failed", f"the TLS certificate {certificate} is valid from {_day(begins)} to {_day(ends)} only"
    address = urlsplit(settings.public_url)
    if address.scheme != "https":
        return "failed", "the service terminates TLS, but FRONTDESK_BASE_URL does not begin with https://"
    if not _is_for(found, address.hostname or ""):
        detail = f"the TLS certificate {certificate} is not for {address.hostname}"
        if settings.base_url is None:
            return "warning", f"{detail}: set FRONTDESK_BASE_URL to the address that callers use"
        return "failed", f"{detail}, the host of FRONTDESK_BASE_URL"
    if ends - now < _EXPIRES_SOON:
        return "warning", f"the TLS certificate {certificate} expires on {_day(ends)}"
    return "ok", f"TLS with a certificate until {_day(ends)}"


def _is_for(certificate: "Certificate", host: str) -> bool:
    from cryptography.x509 import DNSName, ExtensionNotFound, IPAddress, SubjectAlternativeName

    try:
        names = certificate.extensions.get_extension_for_class(SubjectAlternativeName).value
    except ExtensionNotFound:
        return False
    if (number := _number(host)) is not None:
        return number in names.get_values_for_type(IPAddress)
    wildcard = f"*.{host.partition('.')[2]}"
    return any(name.lower() in (host, wildcard) for name in names.get_values_for_type(DNSName))


def _number(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None


def _day(moment: datetime) -> str:
    return moment.astimezone(UTC).date().isoformat()
