"""Settings from FRONTDESK_* variables and a TOML file: one frozen record, read once. An unknown name is an error."""

import difflib
import os
import re
import tomllib
from collections.abc import Callable, Iterable
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError, model_validator
from pydantic_core import ErrorDetails
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

_PREFIX = "FRONTDESK_"
CONFIG_VARIABLE = f"{_PREFIX}CONFIG"
# Kubernetes describes every service of a namespace in such variables; one may be called frontdesk.
_OF_KUBERNETES = re.compile(
    _PREFIX + r"(\w+_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)"
)
_KUBERNETES_PORT = re.compile(_PREFIX + r"(\w+_)?PORT"), re.compile("(tcp|udp|sctp)://")
_ORIGIN = re.compile(r"https?://[a-z0-9.\[\]:-]+\Z")
_USER_INFO = re.compile(r"(?<=://)[^/?#]*@")
MASKED = "(set)"  # shown in place of a secret


class SettingsError(Exception):
    """One sentence about the variable or the key of the file that is wrong."""


def _variable(field: str) -> str:
    return _PREFIX + field.upper()


def _rule(holds: Callable[[Any], bool], says: str) -> AfterValidator:  # given a value of the setting's type
    def check(value: object) -> object:
        if not holds(value):
            raise ValueError(says)
        return value

    return AfterValidator(check)


def _between(minimum: int, maximum: int) -> AfterValidator:
    return _rule(lambda number: minimum <= number <= maximum, f"must be between {minimum} and {maximum}")


def _starts_with(*schemes: str) -> AfterValidator:
    return _rule(lambda url: url.startswith(schemes), f"must start with {' or '.join(schemes)}")


def _is_network(text: str) -> bool:
    try:
        ip_network(text)
    except ValueError:
        return False
    return True


def _has_host(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        return False


def _true_or_false(value: object) -> object:
    if value not in ("true", "false", True, False):
        raise ValueError("must be true or false")
    return value


def _split(value: object) -> object:
    return tuple(item.strip() for item in value.split(",") if item.strip()) if isinstance(value, str) else value


_WebUrl = Annotated[
    str,
    _starts_with("http://", "https://"),
    _rule(
        lambda url: _has_host(url) and re.search(r"[\s?#]", url) is None,
        "must name a host, and have no spaces, query or fragment",
    ),
]
_PublishedUrl = Annotated[_WebUrl, AfterValidator(lambda url: _USER_INFO.sub("", url))]
_DatabaseUrl = Annotated[str, _starts_with("postgresql://", "postgres://")]
_SmtpUrl = Annotated[str, _starts_with("smtps://", "smtp://"), _rule(_has_host, "must name a host")]
_MailAddress = Annotated[
    str, _rule(lambda text: re.fullmatch(r"[^@\s<>]+@[^@\s<>]+", text) is not None, "must be an e-mail address")
]
_List = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split)]
_Origins = Annotated[
    _List,
    _rule(lambda origins: all(map(_ORIGIN.match, origins)), "must hold origins such as https://app.example.com"),
]
_Networks = Annotated[
    _List,
    _rule(lambda networks: all(map(_is_network, networks)), "must hold addresses or networks such as 10.0.0.0/8"),
]
_BELONG_TOGETHER = (
    ("oidc_issuer", "oidc_client_id", "oidc_client_secret"),
    ("smtp_url", "mail_from"),
    ("tls_certificate", "tls_key"),
)
_Token = Annotated[str, _rule(lambda token: len(token) >= 16, "must have at least 16 characters")]


class Settings(BaseSettings):
    """Every field is the variable FRONTDESK_<FIELD>, in capitals, and a key of the file."""

    model_config = SettingsConfigDict(
        alias_generator=_variable,
        validate_by_name=True,
        validate_by_alias=True,
        case_sensitive=True,
        env_ignore_empty=True,
        extra="forbid",
        frozen=True,
        hide_input_in_errors=True,
    )

    data_dir: Path = Path(".frontdesk")
    database_url: _DatabaseUrl | None = Field(default=None, repr=False)
    """Absent: an embedded PostgreSQL under the data directory."""
    migration_database_url: _DatabaseUrl | None = Field(default=None, repr=False)
    """A login that may change the schema, when the service's own may not."""
    direct_database_url: _DatabaseUrl | None = Field(default=None, repr=False)
    """The address of PostgreSQL itself, if `database_url` is a pooler's, through which no notifications pass."""
    secret_key: str | None = Field(default=None, repr=False)
    """Encrypts the keys at rest. Absent: a file of mode 0600 in the data directory, made on first start."""
    host: str = "127.0.0.1"
    port: Annotated[int, _between(1, 65535)] = 8080
    workers: Annotated[int, _between(1, 256)] = 1
    tls_certificate: Path | None = None
    """The certificate chain (PEM) with which the service terminates TLS itself. Absent: it speaks plain HTTP."""
    tls_key: Path | None = None
    insecure_http: Annotated[bool, BeforeValidator(_true_or_false)] = False
    """Whether plain HTTP on an address that other machines can reach is accepted without a warning."""
    base_url: _PublishedUrl | None = None
    """The address that callers use. Absent: made from host and port."""
    docs_url: _PublishedUrl | None = None
    """Where errors are documented. Absent: the base URL."""
    allowed_hosts: _List = ()
    """Further names, separated by commas, under which the MCP door answers, in addition to the base URL's."""
    allowed_origins: _Origins = ()
    """Further origins, separated by commas, whose pages may call the service (CORS), the MCP door included."""
    trusted_proxies: _Networks = ()
    """Addresses or networks, separated by commas, whose X-Forwarded-For is trusted. Absent: none."""
    connections_per_address: Annotated[int, _between(1, 1_000_000)] = 1000
    """How many connections an address may have open to a worker; trusted proxies have no limit."""
    metrics_token: _Token | None = Field(default=None, repr=False)
    """Opens /metrics to callers that send it as a bearer token. Absent: there is no /metrics."""
    otlp_endpoint: _WebUrl | None = None
    """The collector that traces are sent to over OTLP, such as http://127.0.0.1:4318. Absent: nothing is traced."""
    oidc_issuer: _WebUrl | None = None
    """The identity provider (OpenID Connect) by which staff may sign in to the console. Absent: passkeys, links."""
    oidc_client_id: str | None = None
    oidc_client_secret: str | None = Field(default=None, repr=False)
    smtp_url: _SmtpUrl | None = Field(default=None, repr=False)
    """The server that sends sign-in links by mail, such as smtps://user:password@mail.example.com."""
    mail_from: _MailAddress | None = None
    """The sender of these mails."""
    client_metadata_documents: Annotated[bool, BeforeValidator(_true_or_false)] = False
    """Whether assistants may identify themselves by a document at an address of theirs, which the service fetches."""
    webhook_allow_private: Annotated[bool, BeforeValidator(_true_or_false)] = False
    """Whether webhooks and key sets of clients may be at private and loopback addresses, and on plain http."""
    fhir_server: Annotated[bool, BeforeValidator(_true_or_false)] = False
    """Whether the practices are served as FHIR R4 under /fhir/R4."""
    token_lifetime_seconds: Annotated[int, _between(60, 86400)] = 3600
    confirmation_seconds: Annotated[int, _between(10, 86400)] = 600
    drain_seconds: Annotated[int, _between(0, 600)] = 5
    """How long the port stays open after SIGTERM, while /readyz answers 503: as long as a load balancer may need."""
    shutdown_seconds: Annotated[int, _between(1, 600)] = 25
    """How long calls in flight may take to finish once the port is closed."""
    database_pool_size: Annotated[int, _between(2, 500)] = 16
    audit_heads_file: Path | None = None
    """A file to which signed heads of the audit trails are appended, as JSON lines. Absent: they are logged only."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"

    @model_validator(mode="after")
    def _check_groups(self) -> "Settings":
        for fields in _BELONG_TOGETHER:
            values = [getattr(self, field) for field in fields]
            if any(values) and not all(values):
                *others, last = map(_variable, fields)
                of_them = "both" if len(fields) == 2 else "all of them"
                raise ValueError(f"{', '.join(others)} and {last} belong together: set {of_them} or none")
        return self

    def as_environment(self) -> dict[str, str]:
        """The variables that give the same settings, for another process."""
        return {_variable(field): _text(getattr(self, field)) for field in type(self).model_fields}

    def shown(self, field: str) -> object:
        """The value as people may read it: a secret is masked, and so are user name and password in an address."""
        value = getattr(self, field)
        if not type(self).model_fields[field].repr:
            return MASKED if value else value
        return tuple(map(_masked, value)) if isinstance(value, tuple) else _masked(value)

    def __repr_args__(self) -> Iterable[tuple[str, object]]:
        return [(field, self.shown(field)) for field, kind in type(self).model_fields.items() if kind.repr]

    @property
    def uses_data_dir(self) -> bool:
        return self.database_url is None or self.secret_key is None or self.metrics_folder is not None

    @property
    def postgres_dir(self) -> Path:
        """The embedded PostgreSQL's own folder."""
        return self.data_dir / "postgres"

    @property
    def metrics_folder(self) -> Path | None:
        """Where several workers share their numbers. Named after the address, which no other server can have."""
        if self.metrics_token is None or self.workers == 1:
            return None
        return self.data_dir / "metrics" / f"{self.host}-{self.port}"

    @property
    def secret_key_file(self) -> Path:
        """Used if there is no FRONTDESK_SECRET_KEY."""
        return self.data_dir / "secret.key"

    @property
    def public_url(self) -> str:
        scheme = "http" if self.tls_certificate is None else "https"
        return (self.base_url or f"{scheme}://{_reachable(self.host)}:{self.port}").rstrip("/")

    @property
    def token_url(self) -> str:
        return f"{self.public_url}/oauth/token"

    @property
    def documentation_url(self) -> str:
        return (self.docs_url or self.public_url).rstrip("/")


Source = Literal["option", "environment", "file", "default"]


class LoadedSettings(NamedTuple):
    settings: Settings
    file: Path | None
    sources: dict[str, Source]
    """Where the value of each field comes from."""


def load_settings(**options: object) -> Settings:
    """Settings from options that are not None, then the environment, then the file that FRONTDESK_CONFIG names."""
    return load_with_sources(**options).settings


def load_with_sources(**options: Any) -> LoadedSettings:  # arguments of the model
    _drop_variables_of_kubernetes()
    fields = Settings.model_fields
    known = [CONFIG_VARIABLE, *map(_variable, fields)]
    for name in os.environ:
        if name.startswith(_PREFIX) and name not in known:
            raise SettingsError(f"{name} is not a setting of frontdesk; the closest is {_closest(name, known)}.")
    path = Path(os.environ[CONFIG_VARIABLE]) if os.environ.get(CONFIG_VARIABLE) else None
    in_file = {} if path is None else _read(path)
    given = {field: value for field, value in options.items() if value is not None}
    chosen = {field: in_file[field] for field in in_file if field not in given and not os.environ.get(_variable(field))}
    try:
        settings = Settings(**chosen, **given)
    except ValidationError as error:
        raise SettingsError(_sentence(error.errors()[0], chosen, path)) from None
    sources = {field: _source(field, given, chosen) for field in fields}
    return LoadedSettings(settings, path, sources)


def _source(field: str, options: dict[str, object], in_file: dict[str, object]) -> Source:
    if field in options:
        return "option"
    if os.environ.get(_variable(field)):
        return "environment"
    return "file" if field in in_file else "default"


def _drop_variables_of_kubernetes() -> None:
    named, holds = _KUBERNETES_PORT
    for name, value in list(os.environ.items()):
        if _OF_KUBERNETES.fullmatch(name) or (named.fullmatch(name) and holds.match(value)):
            del os.environ[name]


def _read(path: Path) -> dict[str, Any]:  # TOML
    """The keys of the file. A relative path in it starts at the file's folder."""
    try:
        with path.open("rb") as file:
            found = tomllib.load(file)
    except OSError as error:
        raise SettingsError(f"The settings in {path} cannot be read: {error.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:  # a message of the latter may quote a secret
        where = f": {error}" if isinstance(error, tomllib.TOMLDecodeError) else ""
        raise SettingsError(f"The settings in {path} are not valid TOML{where}.") from None
    except RecursionError:
        raise SettingsError(f"The settings in {path} are nested too deeply.") from None
    for key, value in found.items():
        if key not in Settings.model_fields:
            closest = _closest(key, Settings.model_fields)
            raise SettingsError(f"{key} in {path} is not a setting of frontdesk; the closest is {closest}.")
        if isinstance(value, str) and Path in _types(key):
            found[key] = path.parent / value
    return found


def _types(field: str) -> tuple[object, ...]:
    annotation = Settings.model_fields[field].annotation
    return getattr(annotation, "__args__", (annotation,))


def _closest(name: str, known: Iterable[str]) -> str:
    return difflib.get_close_matches(name, known, n=1, cutoff=0.0)[0]


def _text(value: object) -> str:
    if isinstance(value, tuple):
        return ",".join(value)
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _masked(value: object) -> object:
    return _USER_INFO.sub(f"{MASKED}@", value) if isinstance(value, str) else value


def _sentence(error: ErrorDetails, in_file: dict[str, object], path: Path | None) -> str:
    """Names the variable or the key, and never its value, which may be a secret."""
    match error["type"]:
        case "value_error":
            says = str(error["ctx"]["error"])
        case "literal_error":
            says = f"must be {error['ctx']['expected']}".replace("'", "")
        case "int_parsing" | "int_type" | "int_from_float":
            says = "must be a whole number"
        case "string_type" | "path_type":
            says = "must be text"
        case "tuple_type":
            says = "must be a list of texts"
        case other:
            says = f"is not valid: {other}"
    if not error["loc"]:
        return f"{says}."
    field = str(error["loc"][0]).removeprefix(_PREFIX).lower()
    return f"{f'{field} in {path}' if field in in_file else _variable(field)} {says}."


def _reachable(host: str) -> str:
    """An address that can be called when the service listens on every one."""
    if host in ("0.0.0.0", "::", ""):  # noqa: S104
        return "127.0.0.1"
    return f"[{host}]" if ":" in host else host
