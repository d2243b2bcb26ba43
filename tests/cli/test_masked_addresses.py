"""User names and passwords in the addresses of settings: nobody reads them, and nothing publishes them."""

import json
import tarfile
from pathlib import Path

import pytest

from frontdesk.access.staff.identity_provider import IdentityProvider
from frontdesk.cli import doctor, main
from frontdesk.cli.alert_checks import traces
from frontdesk.settings import MASKED, Settings, SettingsError, load_settings
from tests.cli.command_line import CommandLine

SCHEMES = ("https", "http", "smtps", "smtp", "postgresql", "postgres")
USER, PASSWORD = "somebody", "hunter2"
ELSEWHERE = "127.0.0.1:1/x"  # nothing answers there
NEEDED = {
    "oidc_issuer": {"oidc_client_id": "x", "oidc_client_secret": "x"},
    "smtp_url": {"mail_from": "desk@example.org"},
}


def _takes(field: str, value: str) -> bool:
    try:
        load_settings(**{field: value, **NEEDED.get(field, {})})
    except SettingsError:
        return False
    return True


def _address(field: str) -> str | None:
    """An address with user info that the setting takes; None if it is not a setting for addresses."""
    if _takes(field, "a text that is no address"):
        return None
    addresses = (f"{scheme}://{USER}:{PASSWORD}@{ELSEWHERE}" for scheme in SCHEMES)
    return next((address for address in addresses if _takes(field, address)), None)


ADDRESSES = {field: address for field in Settings.model_fields if (address := _address(field)) is not None}
ALL = ADDRESSES | {name: value for needed in NEEDED.values() for name, value in needed.items()}
VARIABLES = {f"FRONTDESK_{name.upper()}": value for name, value in ALL.items()}


def test_every_address_among_the_settings_is_tried() -> None:
    named = {field for field in Settings.model_fields if field.endswith(("_url", "_endpoint", "_issuer"))}
    assert named == set(ADDRESSES)


@pytest.mark.parametrize("field", ADDRESSES)
def test_user_info_is_in_no_text_about_the_settings(field: str) -> None:
    settings = load_settings(**ALL)
    shown = settings.shown(field)
    assert PASSWORD not in f"{shown} {settings!r} {settings!s} {settings.public_url} {settings.documentation_url}"
    assert USER not in f"{shown} {settings!r}"
    address = ADDRESSES[field]
    kept = address.replace(f"{USER}:{PASSWORD}@", f"{MASKED}@")
    assert shown in (MASKED, kept, (kept,), address.replace(f"{USER}:{PASSWORD}@", ""))


@pytest.mark.parametrize("field", ["base_url", "docs_url"])
def test_an_address_that_is_published_is_kept_without_user_info(field: str) -> None:
    for user_info in ("a@", "a:b@", "a:b@c@", ":b@", "a%40b:%2F@"):
        settings = load_settings(**{field: f"https://{user_info}desk.example/x@y"})
        assert getattr(settings, field) == "https://desk.example/x@y"


def test_config_show_and_errors_have_no_user_info(line: CommandLine) -> None:
    for words in (("config", "show"), ("config", "show", "--json")):
        done = line.run(*words, **VARIABLES)
        assert done.status == 0, done.err
        assert "otlp_endpoint" in done.out
        assert USER not in done.out + done.err
        assert PASSWORD not in done.out + done.err
    for variable, value in VARIABLES.items():
        broken = line.run("config", "show", **{**VARIABLES, variable: f"{value}\n? #:"})
        assert PASSWORD not in broken.out + broken.err


def test_doctor_and_support_bundle_have_no_user_info(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in {**VARIABLES, "FRONTDESK_DATA_DIR": str(tmp_path / "data")}.items():
        monkeypatch.setenv(name, value)
    file = tmp_path / "bundle.tar.gz"
    assert main(["support-bundle", "--output", str(file), "--json"]) == 0
    with tarfile.open(file) as archive:
        contents = [archive.extractfile(name).read().decode() for name in archive.getnames()]  # type: ignore[union-attr]
    main(["doctor"])
    main(["doctor", "--json"])
    printed = capsys.readouterr()
    for text in (*contents, printed.out, printed.err):
        assert PASSWORD not in text
        assert USER not in text


def test_checks_that_are_in_order_show_where_they_looked_without_user_info(monkeypatch: pytest.MonkeyPatch) -> None:
    async def begins(_provider: IdentityProvider) -> None:
        return None

    monkeypatch.setattr(IdentityProvider, "begin", begins)
    settings = load_settings(**ALL)
    for state, text in (doctor._identity_provider(settings), traces(settings)):
        assert state == "ok"
        assert json.dumps(text).count(f"{MASKED}@{ELSEWHERE}") == 1
        assert PASSWORD not in text
