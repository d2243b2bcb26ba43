"""Checks what the service exposes to others: `doctor` reports a problem, and `serve` warns of it."""

import os
import socket
from datetime import UTC, datetime
from ipaddress import ip_address
from typing import TYPE_CHECKING, Literal

from frontdesk.cli.certificates import check_certificate
from frontdesk.privileges import UNPRIVILEGED

if TYPE_CHECKING:
    from frontdesk.settings import LoadedSettings, Settings

_ON_THE_INTERNET = "https://vscode.dev/"  # where an assistant has its document

CheckOutcome = tuple[Literal["ok", "warning", "failed", "skipped"], str]


def warnings(settings: "Settings") -> list[str]:
    """What `serve` warns of when it starts."""
    plain_http, shared_account = network(settings), account(settings)
    return [
        *([plain_http[1]] if plain_http[0] == "failed" else []),
        *([shared_account[1]] if shared_account[0] != "ok" else []),
    ]


def network(settings: "Settings") -> CheckOutcome:
    """Whether tokens and patient data cross the network in plain text."""
    if settings.tls_certificate is not None and settings.tls_key is not None:
        return check_certificate(settings, settings.tls_certificate, settings.tls_key, datetime.now(UTC))
    try:
        if _is_loopback(settings.host):
            return "ok", f"only this machine can connect to {settings.host}"
    except OSError:
        return "skipped", f"{settings.host} is not an address of this machine"
    if settings.trusted_proxies and settings.public_url.startswith("https://"):
        return "ok", "the proxies of FRONTDESK_TRUSTED_PROXIES terminate TLS"
    if settings.insecure_http:
        return "warning", f"plain HTTP on {settings.host}, as FRONTDESK_INSECURE_HTTP allows"
    return "failed", (
        f"plain HTTP on {settings.host}: secrets, tokens and patient data cross the network unencrypted. Set "
        "FRONTDESK_TLS_CERTIFICATE and FRONTDESK_TLS_KEY, or terminate TLS at a reverse proxy and set "
        "FRONTDESK_TRUSTED_PROXIES and an https FRONTDESK_BASE_URL, or accept plain HTTP with --insecure-http or "
        "FRONTDESK_INSECURE_HTTP=true"
    )


def settings_file(loaded: "LoadedSettings") -> CheckOutcome:
    """Whether other accounts can read the secrets in the file of the settings."""
    if loaded.file is None:
        return "skipped", "there is none: settings come from variables"
    fields = type(loaded.settings).model_fields
    secrets = [name for name, source in loaded.sources.items() if source == "file" and not fields[name].repr]
    if secrets and loaded.file.stat().st_mode & 0o007:
        return "warning", (
            f"{loaded.file} holds {', '.join(secrets)} and is open to other accounts: "
            f"give it to the group of the service's account and run chmod o= {loaded.file}"
        )
    return "ok", str(loaded.file)


def account(_settings: "Settings") -> CheckOutcome:
    """Whether the service runs as an ordinary account."""
    if os.geteuid() != 0:
        return "ok", "the service does not run as root"
    return "failed", (
        f"root runs the service, so that workers and the embedded database run as {UNPRIVILEGED}, and other processes "
        f"of {UNPRIVILEGED} can read the database: this is for trying it out. Run useradd --system frontdesk, and "
        "start the service as that account with a data directory of its own"
    )


def _is_loopback(host: str) -> bool:
    """A name counts if all of its addresses do."""
    found = socket.getaddrinfo(host or None, 0, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    return all(ip_address(str(address[0]).partition("%")[0]).is_loopback for *_, address in found)


def client_documents(settings: "Settings") -> CheckOutcome:
    """The service must be able to fetch documents: clients that see them advertised do not register instead."""
    if not settings.client_metadata_documents:
        return "skipped", "FRONTDESK_CLIENT_METADATA_DOCUMENTS is off: assistants register themselves"
    from frontdesk.cli.connection import wait_for
    from frontdesk.outbound.checked_http import CheckedHttp, failure_of

    async def reach() -> None:
        http = CheckedHttp(allow_private=False)
        try:
            answer = await http.open("GET", _ON_THE_INTERNET, {})
            await answer.aclose()
        finally:
            await http.close()

    try:
        wait_for(reach())
    except Exception as error:
        advice = "assistants cannot connect until it is off or the service can reach the internet"
        return "failed", f"{_ON_THE_INTERNET} cannot be reached ({failure_of(error)}): {advice}"
    return "ok", f"{_ON_THE_INTERNET} can be reached"
