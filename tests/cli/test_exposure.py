"""What the service exposes to others is found by `doctor` and warned of by `serve`."""

import argparse
import json
import logging
import os
from typing import Any

import pytest

from frontdesk.cli.exposure import network, warnings
from frontdesk.cli.serve import _announce
from frontdesk.settings import Settings

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


@pytest.mark.parametrize(("insecure", "warned"), [(False, True), (True, False)])
def test_serve_warns_of_plain_http_to_a_network(
    insecure: bool,
    warned: bool,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = Settings(host="0.0.0.0", run_as=None, insecure_http=insecure)
    monkeypatch.setattr(os, "getuid", lambda: 1000)
    found = warnings(settings)
    _announce(argparse.Namespace(json=False), settings, None, found)
    assert ("WARNING: plain HTTP on 0.0.0.0" in capsys.readouterr().out) is warned
    assert [record.levelno for record in caplog.records] == [logging.WARNING] * warned
    _announce(argparse.Namespace(json=True), settings, None, found)
    assert len(json.loads(capsys.readouterr().out)["warnings"]) == warned
