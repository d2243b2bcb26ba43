"""Debian's Firefox, driven over WebDriver BiDi without Playwright."""

import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from websockets.sync.client import ClientConnection, connect

SECONDS = 60.0  # for anything: a loaded machine takes its time
_POLL_INTERVAL_SECONDS = 0.05
# Toasts stay until the test has seen them.
_PATIENT = """() => {
  const usual = window.setTimeout;
  window.setTimeout = (work, ms, ...given) => (ms >= 5000 ? 0 : usual(work, ms, ...given));
}"""
_PREFS = """
user_pref("browser.shell.checkDefaultBrowser", false);
user_pref("datareporting.policy.dataSubmissionEnabled", false);
user_pref("app.normandy.enabled", false);
user_pref("network.captive-portal-service.enabled", false);
user_pref("network.connectivity-service.enabled", false);
user_pref("ui.prefersReducedMotion", 1);
"""
_KEYS = {"Enter": "\ue007", "Tab": "\ue004", "Escape": "\ue00c"}


def installed() -> str | None:
    return shutil.which("firefox-esr") or shutil.which("firefox")


@dataclass
class Firefox:
    """One window. `errors` are the errors and warnings of its pages."""

    connection: ClientConnection
    errors: list[str] = field(default_factory=list)
    _context: str = ""
    _numbers: Iterator[int] = field(default_factory=count)

    def open(self, width: int, height: int) -> None:
        self._send("session.new", capabilities={})
        self._send("session.subscribe", events=["log.entryAdded"])
        self._context = self._send("browsingContext.create", type="tab")["context"]
        self._send("browsingContext.activate", context=self._context)
        self._send("browsingContext.setViewport", context=self._context, viewport={"width": width, "height": height})
        self._send("script.addPreloadScript", functionDeclaration=_PATIENT)

    def go(self, url: str) -> None:
        self._send("browsingContext.navigate", context=self._context, url=url, wait="complete")

    def run(self, expression: str) -> Any:
        """The value of a JavaScript expression in the page."""
        reply = self._send(
            "script.evaluate",
            expression=f"JSON.stringify({expression})",
            target={"context": self._context},
            awaitPromise=False,
        )
        assert reply["type"] == "success", reply
        value = reply["result"].get("value")
        return None if value is None else json.loads(value)

    def wait(self, expression: str) -> None:
        """Until the expression is true, through any number of new pages."""
        ends, last = time.monotonic() + SECONDS, ""
        while time.monotonic() < ends:
            try:
                if self.run(f"Boolean({expression})"):
                    return
            except (AssertionError, BidiError) as error:  # between two pages
                last = str(error)
            time.sleep(_POLL_INTERVAL_SECONDS)
        raise AssertionError(f"{expression} does not become true: {last} {self.run('document.body.innerText')}")

    def focus(self, selector: str, text: str = "") -> None:
        self.run(f"{self._shown(selector, text)}.focus()")

    def click(self, selector: str, text: str) -> None:
        self.run(f"{self._shown(selector, text)}.click()")

    def press(self, *keys: str) -> None:
        actions = [{"type": kind, "value": _KEYS.get(key, key)} for key in keys for kind in ("keyDown", "keyUp")]
        source = {"type": "key", "id": "keyboard", "actions": actions}
        self._send("input.performActions", context=self._context, actions=[source])

    def set_cookie(self, url: str, name: str, value: str) -> None:
        cookie = {"name": name, "value": {"type": "string", "value": value}, "domain": urlsplit(url).hostname}
        self._send("storage.setCookie", cookie=cookie, partition={"type": "context", "context": self._context})

    def _shown(self, selector: str, text: str) -> str:
        """The expression for an element that is visible and has this text, once there is one."""
        fits = f"(each) => each.checkVisibility() && each.textContent.includes({json.dumps(text)})"
        found = f"[...document.querySelectorAll({json.dumps(selector)})].find({fits})"
        self.wait(found)
        return found

    def _send(self, method: str, **params: Any) -> dict[str, Any]:
        number = next(self._numbers)
        self.connection.send(json.dumps({"id": number, "method": method, "params": params}))
        while True:
            message = json.loads(self.connection.recv(timeout=SECONDS))
            if message.get("method") == "log.entryAdded":
                self._note(message["params"])
            if message.get("id") != number:
                continue
            if message["type"] == "error":
                raise BidiError(f"{method}: {message['error']}: {message['message']}")
            result: dict[str, Any] = message["result"]
            return result

    def _note(self, entry: dict[str, Any]) -> None:
        if entry["level"] in ("error", "warn"):
            self.errors.append(f"{entry['level']}: {entry['text']}")


class BidiError(Exception):
    """Firefox could not do it."""


@contextmanager
def firefox(folder: Path, width: int = 1280, height: int = 900) -> Iterator[Firefox]:
    """A Firefox with a new profile."""
    executable = installed()
    assert executable is not None
    (folder / "profile").mkdir()
    (folder / "profile" / "user.js").write_text(_PREFS)
    log = folder / "firefox.log"
    arguments = ["--headless", "--no-remote", "--profile", str(folder / "profile"), "--remote-debugging-port", "0"]
    environment = {**os.environ, "HOME": str(folder), "MOZ_CRASHREPORTER_DISABLE": "1"}
    with log.open("w") as output:
        process = subprocess.Popen([executable, *arguments], stdout=output, stderr=output, env=environment)
    try:
        with connect(f"{_address(process, log)}/session", max_size=None, open_timeout=SECONDS) as connection:
            window = Firefox(connection)
            window.open(width, height)
            yield window
    finally:
        process.terminate()
        try:
            process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _address(process: "subprocess.Popen[bytes]", log: Path) -> str:
    ends = time.monotonic() + SECONDS
    while time.monotonic() < ends and process.poll() is None:
        if found := re.search(r"WebDriver BiDi listening on (ws://\S+)", log.read_text()):
            return found[1]
        time.sleep(_POLL_INTERVAL_SECONDS)
    raise AssertionError(f"Firefox does not listen: {log.read_text()}")
