"""The address of the service, kept in the data directory for commands that print addresses."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from frontdesk.settings import Settings

FILE_NAME = "address"


def record_address(settings: "Settings") -> None:
    if settings.uses_data_dir:
        (settings.data_dir / FILE_NAME).write_text(f"{settings.public_url}\n", encoding="utf-8")


def with_recorded_address(settings: "Settings") -> "Settings":
    """With the address that the service had when it started last, unless an address is set for the command."""
    if settings.model_fields_set & {"base_url", "host", "port"}:
        return settings
    try:
        recorded = (settings.data_dir / FILE_NAME).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return settings
    if not recorded.startswith(("http://", "https://")):
        return settings
    return settings.model_copy(update={"base_url": recorded})
