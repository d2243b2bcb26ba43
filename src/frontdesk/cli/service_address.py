"""The address of the service, kept in the data directory for commands that print addresses."""

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from frontdesk.cli.running_service import ask_service

if TYPE_CHECKING:
    from frontdesk.settings import Settings

FILE_NAME = "address"
_THIS_MACHINE = ("127.0.0.1", "localhost", "::1")


def record_address(settings: "Settings") -> None:
    """Records the address of this service, unless another service with the same data directory still answers."""
    if settings.uses_data_dir and not _answers(_recorded_address(settings), settings):
        (settings.data_dir / FILE_NAME).write_text(f"{settings.public_url}\n", encoding="utf-8")


def with_recorded_address(settings: "Settings") -> "Settings":
    """The settings with the address that the service had when it last started, unless the command has one set."""
    if settings.model_fields_set & {"base_url", "host", "port"}:
        return settings
    recorded = _recorded_address(settings)
    return settings if recorded is None else settings.model_copy(update={"base_url": recorded})


def _recorded_address(settings: "Settings") -> str | None:
    try:
        recorded = (settings.data_dir / FILE_NAME).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return None
    return recorded if recorded.startswith(("http://", "https://")) else None


def _answers(address: str | None, settings: "Settings") -> bool:
    try:
        parts = urlsplit(address or "")
        host, port = parts.hostname, parts.port
    except ValueError:
        return False
    if host not in _THIS_MACHINE or port is None:
        return False
    answer = ask_service(settings.model_copy(update={"host": host, "port": port}), "/readyz")
    return answer is not None and '"status"' in answer[1]
