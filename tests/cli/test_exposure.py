"""What the service exposes to others is found by `doctor` and warned of by `serve`."""

import argparse
import json
import logging
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import ValidationError

from frontdesk.cli.certificates import check_certificate
from frontdesk.cli.exposure import client_documents, network, settings_file, warnings
from frontdesk.cli.serve import _announce
from frontdesk.outbound.checked_http import CheckedHttp
from frontdesk.settings import CONFIG_VARIABLE, Settings, load_with_sources
from tests.serving.authority import Authority

PROXY = {"trusted_proxies": ("10.0.0.1",), "base_url": "https://desk.example.org"}


@pytest.mark.parametrize(
    ("settings", "state"),
    [
        ({}, "ok"),
        ({"host": "localhost"}, "ok"),
        ({"host": "127.8.8.8"}, "ok"),
        ({"host": "::1"}, "ok"),
        ({"host": "0.0.0.0"}, "failed"),
        ({"host": "::"}, "failed"),
        ({"host": "192.0.2.7"}, "failed"),
        ({"host": "0.0.0.0", **PROXY}, "ok"),
        ({"host": "0.0.0.0", **PROXY, "trusted_proxies": ()}, "failed"),
        ({"host": "0.0.0.0", **PROXY, "base_url": "http://desk.example.org"}, "failed"),
        ({"host": "0.0.0.0", "insecure_http": True}, "warning"),
    ],
)
def test_plain_http_to_a_network_needs_a_declared_proxy_or_consent(settings: dict[str, Any], state: str) -> None:
    assert network(Settings(**settings))[0] == state


@pytest.mark.parametrize(
    ("text", "mode", "state"),
    [
        ('metrics_token = "a token of the tests"', 0o644, "warning"),
        ('metrics_token = "a token of the tests"', 0o601, "warning"),
        ('metrics_token = "a token of the tests"', 0o640, "ok"),
        ("port = 8081", 0o644, "ok"),
    ],
)
def test_secrets_in_a_settings_file_that_others_can_read_are_found(
    text: str, mode: int, state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FRONTDESK_METRICS_TOKEN", raising=False)
    assert settings_file(load_with_sources())[0] == "skipped"
    path = tmp_path / "frontdesk.toml"
    path.write_text(text)
    path.chmod(mode)
    monkeypatch.setenv(CONFIG_VARIABLE, str(path))
    found, detail = settings_file(load_with_sources())
    assert found == state
    assert "a token of the tests" not in detail


@pytest.mark.parametrize(("insecure", "warned"), [(False, True), (True, False)])
def test_serve_warns_of_plain_http_to_a_network(
    insecure: bool,
    warned: bool,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = Settings(host="0.0.0.0", insecure_http=insecure)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    found = warnings(settings)
    _announce(argparse.Namespace(json=False), settings, None, found)
    assert ("WARNING: plain HTTP on 0.0.0.0" in capsys.readouterr().out) is warned
    assert [record.levelno for record in caplog.records] == [logging.WARNING] * warned
    _announce(argparse.Namespace(json=True), settings, None, found)
    assert len(json.loads(capsys.readouterr().out)["warnings"]) == warned


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return Authority().issue(tmp_path_factory.mktemp("pair"), names=("desk.example.org", "*.desk.example.org", "::1"))[
        :2
    ]


@pytest.mark.parametrize(
    ("base_url", "days", "state", "says"),
    [
        ("https://desk.example.org", 0, "ok", "until"),
        ("https://eu.desk.example.org:8443/", 0, "ok", "until"),
        ("https://[::1]:8443", 0, "ok", "until"),
        ("https://a.eu.desk.example.org", 0, "failed", "is not for a.eu.desk.example.org"),
        ("https://192.0.2.1", 0, "failed", "is not for 192.0.2.1"),
        (None, 0, "warning", "set FRONTDESK_BASE_URL"),
        ("http://desk.example.org", 0, "failed", "does not begin with https://"),
        ("https://desk.example.org", 80, "warning", "expires on"),
        ("https://desk.example.org", 91, "failed", "is valid from"),
        ("https://desk.example.org", -31, "failed", "is valid from"),
    ],
)
def test_a_certificate_must_fit_the_address_and_the_day(
    pair: tuple[Path, Path], base_url: str | None, days: int, state: str, says: str
) -> None:
    settings = Settings(base_url=base_url, tls_certificate=pair[0], tls_key=pair[1])
    found = check_certificate(settings, *pair, datetime.now(UTC) + timedelta(days=days))
    assert found[0] == state, found
    assert says in found[1]


def test_a_key_must_be_usable_and_closed_to_others(tmp_path: Path) -> None:
    certificate, key, _ = Authority().issue(tmp_path)
    settings = Settings(host="0.0.0.0", base_url="https://desk.example.org", tls_certificate=certificate, tls_key=key)
    assert network(settings)[0] == "ok"
    key.chmod(0o640)
    assert network(settings)[0] == "ok"
    key.chmod(0o644)
    assert network(settings) == ("failed", f"the TLS key {key} is open to every account: run chmod o= {key}")
    key.write_text("nothing")
    assert "cannot be used" in network(settings)[1]
    with pytest.raises(ValidationError, match="belong together"):
        Settings(tls_certificate=certificate)


@pytest.mark.parametrize(("failure", "state"), [(None, "ok"), (OSError(), "failed"), (TimeoutError(), "failed")])
def test_the_way_out_is_checked_where_client_documents_are_fetched(
    monkeypatch: pytest.MonkeyPatch, failure: Exception | None, state: str
) -> None:
    async def answer(*_given: object) -> httpx.Response:
        if failure is not None:
            raise failure
        return httpx.Response(404)

    monkeypatch.setattr(CheckedHttp, "open", answer)
    found, detail = client_documents(Settings(client_metadata_documents=True))
    assert (found, "vscode.dev" in detail) == (state, True)
    assert client_documents(Settings())[0] == "skipped"
