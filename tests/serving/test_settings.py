"""Settings from the environment."""

import os
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from pydantic import ValidationError

from frontdesk.settings import Settings, SettingsError, load_settings, load_with_sources


def load(environment: dict[str, str], **options: Any) -> Settings:
    with mock.patch.dict(os.environ, environment, clear=True):
        return load_settings(**options)


def test_without_variables_everything_has_its_default() -> None:
    settings = load({"PATH": "/bin", "OTHER_PORT": "1", "frontdesk_port": "2"})
    assert settings == Settings()
    assert (settings.host, settings.port, settings.workers) == ("127.0.0.1", 8080, 1)
    assert settings.data_dir == Path(".frontdesk")
    assert settings.database_url is None, "an embedded PostgreSQL"
    assert (settings.token_lifetime_seconds, settings.confirmation_seconds) == (3600, 600)


def test_variables_have_the_names_of_the_settings() -> None:
    settings = load(
        {
            "FRONTDESK_DATA_DIR": "/var/lib/frontdesk",
            "FRONTDESK_DATABASE_URL": "postgresql://example/frontdesk",
            "FRONTDESK_PORT": "9000",
            "FRONTDESK_BASE_URL": "https://api.example.com/",
            "FRONTDESK_LOG_LEVEL": "debug",
        }
    )
    assert settings.data_dir == Path("/var/lib/frontdesk")
    assert settings.database_url == "postgresql://example/frontdesk"
    assert settings.port == 9000
    assert settings.public_url == "https://api.example.com"
    assert settings.log_level == "debug"


def test_an_unknown_variable_names_the_closest_known_one() -> None:
    for name, closest in (
        ("FRONTDESK_PROT", "FRONTDESK_PORT"),
        ("FRONTDESK_DATABASE", "FRONTDESK_DATABASE_URL"),
        ("FRONTDESK_DATADIR", "FRONTDESK_DATA_DIR"),
        ("FRONTDESK_", "FRONTDESK_"),
    ):
        with pytest.raises(SettingsError) as caught:
            load({name: "x"})
        assert name in str(caught.value)
        assert closest in str(caught.value)


def test_an_empty_variable_counts_as_absent() -> None:
    assert load({"FRONTDESK_PORT": "", "FRONTDESK_DATABASE_URL": ""}) == Settings()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("FRONTDESK_PORT", "http"),
        ("FRONTDESK_PORT", "0"),
        ("FRONTDESK_PORT", "65536"),
        ("FRONTDESK_PORT", "80.5"),
        ("FRONTDESK_WORKERS", "0"),
        ("FRONTDESK_TOKEN_LIFETIME_SECONDS", "59"),
        ("FRONTDESK_CONFIRMATION_SECONDS", "9"),
        ("FRONTDESK_DATABASE_POOL_SIZE", "1"),
        ("FRONTDESK_LOG_LEVEL", "loud"),
        ("FRONTDESK_BASE_URL", "api.example.com"),
        ("FRONTDESK_DOCS_URL", "ftp://example.com"),
        ("FRONTDESK_DATABASE_URL", "mysql://user:hunter2@example.com/db"),
        ("FRONTDESK_METRICS_TOKEN", "hunter2"),
        ("FRONTDESK_TRUSTED_PROXIES", "10.0.0.0/8, nonsense"),
        ("FRONTDESK_ALLOWED_ORIGINS", "example.com"),
        ("FRONTDESK_OIDC_ISSUER", "login.example.com"),
        ("FRONTDESK_OIDC_ISSUER", "https://login.example.com"),
    ],
)
def test_a_wrong_value_is_one_sentence_that_names_the_variable(name: str, text: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load({name: text})
    message = str(caught.value)
    assert message.startswith(name)
    assert message.endswith(".")
    assert "\n" not in message
    assert "hunter2" not in message


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("FRONTDESK_PORT", "http", "FRONTDESK_PORT must be a whole number."),
        ("FRONTDESK_PORT", "0", "FRONTDESK_PORT must be between 1 and 65535."),
        ("FRONTDESK_LOG_LEVEL", "loud", "FRONTDESK_LOG_LEVEL must be debug, info, warning or error."),
        ("FRONTDESK_WEBHOOK_ALLOW_PRIVATE", "1", "FRONTDESK_WEBHOOK_ALLOW_PRIVATE must be true or false."),
        ("FRONTDESK_BASE_URL", "desk", "FRONTDESK_BASE_URL must start with http:// or https://."),
        *(
            ("FRONTDESK_BASE_URL", url, "FRONTDESK_BASE_URL must name a host, and have no spaces, query or fragment.")
            for url in (
                "https://",
                "https:///desk",
                "https://desk example.com",
                "https://[::1",
                "https://desk.example.com:0",
                "https://desk.example.com?a=1",
                "https://desk.example.com/#start",
            )
        ),
        ("FRONTDESK_METRICS_TOKEN", "short", "FRONTDESK_METRICS_TOKEN must have at least 16 characters."),
    ],
)
def test_the_sentence_says_what_is_expected(name: str, text: str, sentence: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load({name: text})
    assert str(caught.value) == sentence


def test_options_win_over_variables_unless_they_were_not_given() -> None:
    environment = {"FRONTDESK_PORT": "9000", "FRONTDESK_HOST": "0.0.0.0"}
    settings = load(environment, port=9001, host=None)
    assert (settings.port, settings.host) == (9001, "0.0.0.0")
    with pytest.raises(SettingsError, match="FRONTDESK_PORT must be between 1 and 65535"):
        load({}, port=70000)


def test_lists_are_separated_by_commas() -> None:
    settings = load({"FRONTDESK_TRUSTED_PROXIES": " 10.0.0.0/8 ,, 192.0.2.1"})
    assert settings.trusted_proxies == ("10.0.0.0/8", "192.0.2.1")


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:8080"),
        ("0.0.0.0", "http://127.0.0.1:8080"),
        ("::", "http://127.0.0.1:8080"),
        ("::1", "http://[::1]:8080"),
        ("desk.example.com", "http://desk.example.com:8080"),
    ],
)
def test_the_public_address_is_one_that_can_be_called(host: str, url: str) -> None:
    settings = Settings(host=host)
    assert settings.public_url == url
    assert settings.documentation_url == url, "which serves the pages, unless they are elsewhere"
    elsewhere = Settings(host=host, docs_url="https://docs.example.com/")
    assert elsewhere.documentation_url == "https://docs.example.com"


def test_secrets_are_not_shown_with_the_settings() -> None:
    settings = Settings(
        database_url="postgresql://user:hunter2@example.com/db",
        secret_key="hunter2" * 5,
        metrics_token="hunter2" * 3,
        oidc_issuer="https://login.example.com",
        oidc_client_id="desk",
        oidc_client_secret="hunter2",
        smtp_url="smtps://desk:hunter2@mail.example.com",
        mail_from="desk@example.com",
    )
    assert "hunter2" not in repr(settings)
    with pytest.raises(ValidationError) as caught:
        Settings(database_url="mysql://user:hunter2@example.com/db")
    assert "hunter2" not in str(caught.value)


def test_an_identity_provider_is_set_completely_or_not_at_all() -> None:
    names = ("FRONTDESK_OIDC_ISSUER", "FRONTDESK_OIDC_CLIENT_ID", "FRONTDESK_OIDC_CLIENT_SECRET")
    complete = dict.fromkeys(names, "https://login.example.com")
    assert load(complete).oidc_issuer == "https://login.example.com"
    for name in names:
        with pytest.raises(SettingsError, match="belong together"):
            load({**complete, name: ""})


def test_a_mail_server_is_set_completely_and_readably() -> None:
    complete = {"FRONTDESK_SMTP_URL": "smtp://mail.example.com", "FRONTDESK_MAIL_FROM": "desk@example.com"}
    assert load(complete).mail_from == "desk@example.com"
    for name in complete:
        with pytest.raises(SettingsError, match="belong together"):
            load({**complete, name: ""})
    for name, value in (("SMTP_URL", "http://x"), ("SMTP_URL", "smtp://"), ("SMTP_URL", "smtp://x:port"),
                        ("MAIL_FROM", "desk"), ("MAIL_FROM", "a@b\nBcc: c@d")):  # fmt: skip
        with pytest.raises(SettingsError, match=f"FRONTDESK_{name} must"):
            load({**complete, f"FRONTDESK_{name}": value})


def test_settings_do_not_change() -> None:
    with pytest.raises(ValidationError):
        Settings().port = 1  # type: ignore[misc]


def test_a_file_gives_settings_and_the_environment_and_options_take_precedence(tmp_path: Path) -> None:
    file = tmp_path / "frontdesk.toml"
    file.write_text('port = 9000\nhost = "::1"\ndata_dir = "data"\nworkers = 2\ntrusted_proxies = ["10.0.0.0/8"]\n')
    environment = {"FRONTDESK_CONFIG": str(file), "FRONTDESK_PORT": "9001", "FRONTDESK_HOST": ""}
    with mock.patch.dict(os.environ, environment, clear=True):
        settings, path, sources = load_with_sources(workers=3)
    assert (settings.port, settings.host, settings.workers) == (9001, "::1", 3)
    assert settings.trusted_proxies == ("10.0.0.0/8",)
    assert settings.data_dir == tmp_path / "data", "relative to the file"
    assert path == file
    found = {name: sources[name] for name in ("port", "host", "workers", "log_level")}
    assert found == {"port": "environment", "host": "file", "workers": "option", "log_level": "default"}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("prot = 1", "prot in {} is not a setting of frontdesk; the closest is port."),
        ("port = 0", "port in {} must be between 1 and 65535."),
        ('port = "http"', "port in {} must be a whole number."),
        ("host = 1", "host in {} must be text."),
        ('insecure_http = "yes"', "insecure_http in {} must be true or false."),
        ('tls_key = "key.pem"', "FRONTDESK_TLS_CERTIFICATE and FRONTDESK_TLS_KEY belong together: set both or none."),
        ('secret_key = "hunter2', "The settings in {} are not valid TOML: "),
        pytest.param("port = " + "[" * 100_000, "The settings in {} are nested too deeply.", id="nested"),
        ("[service]\nport = 1", "service in {} is not a setting of frontdesk; the closest is "),
    ],
)
def test_a_wrong_file_is_one_sentence_that_names_it(tmp_path: Path, text: str, sentence: str) -> None:
    file = tmp_path / "frontdesk.toml"
    file.write_text(text)
    with pytest.raises(SettingsError) as caught:
        load({"FRONTDESK_CONFIG": str(file)})
    assert str(caught.value).startswith(sentence.format(file))
    assert "hunter2" not in str(caught.value)


def test_a_file_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(SettingsError, match=r"^The settings in /nowhere/f\.toml cannot be read: No such file"):
        load({"FRONTDESK_CONFIG": "/nowhere/f.toml"})


def test_another_process_gets_the_same_settings() -> None:
    settings = Settings(
        data_dir=Path("/data"), insecure_http=True, trusted_proxies=("10.0.0.0/8", "192.0.2.1"), log_level="debug"
    )
    assert load(settings.as_environment()) == settings


def test_variables_that_kubernetes_sets_for_a_service_called_frontdesk_are_no_settings() -> None:
    settings = load(
        {
            "FRONTDESK_PORT": "tcp://10.96.0.7:80",
            "FRONTDESK_SERVICE_HOST": "10.96.0.7",
            "FRONTDESK_SERVICE_PORT": "80",
            "FRONTDESK_SERVICE_PORT_HTTP": "80",
            "FRONTDESK_PORT_80_TCP": "tcp://10.96.0.7:80",
            "FRONTDESK_PORT_80_TCP_ADDR": "10.96.0.7",
            "FRONTDESK_DB_PORT": "tcp://10.96.0.8:5432",
            "FRONTDESK_DB_PORT_5432_TCP_PROTO": "tcp",
            "FRONTDESK_DB_SERVICE_HOST": "10.96.0.8",
        }
    )
    assert settings == Settings()
