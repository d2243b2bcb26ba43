"""Settings from FRONTDESK_* variables: one frozen record, read once. An unknown variable is an error."""

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from ipaddress import ip_network
from pathlib import Path
from typing import Any

_PREFIX = "FRONTDESK_"
_SCHEMES = {
    "base_url": ("http://", "https://"),
    "docs_url": ("http://", "https://"),
    "oidc_issuer": ("https://", "http://"),
    "database_url": ("postgresql://", "postgres://"),
    "migration_database_url": ("postgresql://", "postgres://"),
}
_ORIGIN = re.compile(r"https?://[a-z0-9.\[\]:-]+\Z")
_SHORTEST_TOKEN = 16


class SettingsError(Exception):
    """One sentence about the variable that is wrong."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Every field is the variable FRONTDESK_<FIELD>, in capitals."""

    data_dir: Path = Path(".frontdesk")
    database_url: str | None = field(default=None, repr=False)
    """Absent: an embedded PostgreSQL under the data directory."""
    migration_database_url: str | None = field(default=None, repr=False)
    """A login that may change the schema, when the service's own may not."""
    secret_key: str | None = field(default=None, repr=False)
    """Encrypts the keys at rest. Absent: a file of mode 0600 in the data directory, made on first start."""
    host: str = "127.0.0.1"
    port: int = 8080
    workers: int = 1
    base_url: str | None = None
    """The address that callers use. Absent: made from host and port."""
    docs_url: str | None = None
    """Where errors are documented. Absent: the base URL."""
    allowed_hosts: tuple[str, ...] = ()
    """Further names, separated by commas, under which the MCP door answers beside the base URL's."""
    allowed_origins: tuple[str, ...] = ()
    """Further origins, separated by commas, whose pages may call the service (CORS), the MCP door included."""
    trusted_proxies: tuple[str, ...] = ()
    """Addresses or networks, separated by commas, whose X-Forwarded-For is believed. Absent: nobody's is."""
    metrics_token: str | None = field(default=None, repr=False)
    """Opens /metrics to whoever sends it as a bearer token. Absent: there is no /metrics."""
    oidc_issuer: str | None = None
    """The identity provider through which people may sign in to the console (OpenID Connect). Absent: by links only."""
    oidc_client_id: str | None = None
    oidc_client_secret: str | None = field(default=None, repr=False)
    webhook_allow_private: bool = False
    """Whether webhooks may go to private and loopback addresses, and over plain http."""
    token_lifetime_seconds: int = 3600
    confirmation_seconds: int = 600
    database_pool_size: int = 16
    log_level: str = "info"

    @property
    def postgres_dir(self) -> Path:
        """The embedded PostgreSQL's own folder."""
        return self.data_dir / "postgres"

    @property
    def public_url(self) -> str:
        return (self.base_url or f"http://{_reachable(self.host)}:{self.port}").rstrip("/")

    @property
    def documentation_url(self) -> str:
        return (self.docs_url or self.public_url).rstrip("/")


def load_settings(environment: Mapping[str, str], **overrides: Any) -> Settings:
    """Settings from the environment; overrides that are not None (command-line options) win."""
    known = {f.name: f for f in fields(Settings)}
    values: dict[str, Any] = {}
    for name, text in environment.items():
        if not name.startswith(_PREFIX):
            continue
        key = name[len(_PREFIX) :].lower()
        if key not in known:
            closest = difflib.get_close_matches(key, known, n=1, cutoff=0.0)
            raise SettingsError(f"{name} is not a setting of frontdesk; the closest is {_PREFIX}{closest[0].upper()}.")
        if text != "":
            values[key] = _read(name, text, str(known[key].type))
    values.update({key: value for key, value in overrides.items() if value is not None})
    settings = Settings(**values)
    _check(settings)
    return settings


def _read(name: str, text: str, kind: str) -> Any:
    if "bool" in kind:
        if text not in ("true", "false"):
            raise SettingsError(f"{name} must be true or false.")
        return text == "true"
    if "int" in kind:
        try:
            return int(text)
        except ValueError:
            raise SettingsError(f"{name} must be a whole number.") from None
    if "tuple" in kind:
        return tuple(item.strip() for item in text.split(",") if item.strip())
    return Path(text) if "Path" in kind else text


def _check(settings: Settings) -> None:
    limits = {
        "port": (1, 65535),
        "workers": (1, 256),
        "token_lifetime_seconds": (60, 86400),
        "confirmation_seconds": (10, 86400),
        "database_pool_size": (2, 500),
    }
    for name, (least, most) in limits.items():
        if not least <= getattr(settings, name) <= most:
            raise SettingsError(f"{_PREFIX}{name.upper()} must be between {least} and {most}.")
    if settings.log_level not in ("debug", "info", "warning", "error"):
        raise SettingsError(f"{_PREFIX}LOG_LEVEL must be debug, info, warning or error.")
    for name, schemes in _SCHEMES.items():
        url = getattr(settings, name)
        if url is not None and not url.startswith(schemes):
            raise SettingsError(f"{_PREFIX}{name.upper()} must start with {' or '.join(schemes)}.")
    if any(not _ORIGIN.match(origin) for origin in settings.allowed_origins):
        raise SettingsError(f"{_PREFIX}ALLOWED_ORIGINS must hold origins such as https://app.example.com.")
    for proxy in settings.trusted_proxies:
        try:
            ip_network(proxy)
        except ValueError:
            raise SettingsError(
                f"{_PREFIX}TRUSTED_PROXIES must hold addresses or networks such as 10.0.0.0/8."
            ) from None
    oidc = (settings.oidc_issuer, settings.oidc_client_id, settings.oidc_client_secret)
    if any(oidc) and not all(oidc):
        raise SettingsError(
            f"{_PREFIX}OIDC_ISSUER, {_PREFIX}OIDC_CLIENT_ID and {_PREFIX}OIDC_CLIENT_SECRET belong together: set all "
            "of them or none."
        )
    if settings.metrics_token is not None and len(settings.metrics_token) < _SHORTEST_TOKEN:
        raise SettingsError(f"{_PREFIX}METRICS_TOKEN must have at least {_SHORTEST_TOKEN} characters.")


def _reachable(host: str) -> str:
    """What a person can paste when the service listens everywhere."""
    if host in ("0.0.0.0", "::", ""):  # noqa: S104
        return "127.0.0.1"
    return f"[{host}]" if ":" in host else host
