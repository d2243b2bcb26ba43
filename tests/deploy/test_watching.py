"""Alert rules and dashboard, with the programs that read them: promtool, and a Prometheus that scrapes a service."""

import contextlib
import json
import subprocess
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import yaml

from tests.crash.harness import COMMAND
from tests.deploy.installing import ROOT
from tests.deploy.programs import environment, need, run
from tests.deploy.service import running
from tests.support.ports import free_port
from tests.support.stopping import NO_DRAIN

pytestmark = pytest.mark.heavy

RULES = ROOT / "deploy" / "prometheus"
DASHBOARD = json.loads((ROOT / "deploy" / "grafana" / "frontdesk.json").read_text())
TOKEN = "the token of the scraper"
WAIT_TIMEOUT = 120.0
# Nobody has signed in, nothing was refused, and no step runs or fails at the moment.
OFTEN_EMPTY = {"Answer cache hits", "Refusals by the gateway", "Background failures", "Background steps that run now"}


def test_alerts_pass_their_test_cases() -> None:
    need("promtool")
    run("promtool", "check", "rules", RULES / "alerts.yml")
    run("promtool", "test", "rules", RULES / "alerts.test.yml")


def test_panels_have_places_of_their_own() -> None:
    taken = set()
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not taken & cells, panel["title"]
        assert max(x for x, _ in cells) < 24
        taken |= cells
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(ids) == len(set(ids))


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a Prometheus with our files, which scrapes a service."""
    need("prometheus")
    folder = tmp_path_factory.mktemp("prometheus")
    port, own_port = free_port(), free_port()
    token = folder / "token"
    token.write_text(TOKEN)
    config = (RULES / "prometheus.yml").read_text()
    for written, here in (
        ("15s", "1s"),
        ("127.0.0.1:8080", f"127.0.0.1:{port}"),
        ("/etc/prometheus/frontdesk-metrics-token", str(token)),
    ):
        assert written in config
        config = config.replace(written, here)
    (folder / "prometheus.yml").write_text(config)
    (folder / "alerts.yml").write_text((RULES / "alerts.yml").read_text())
    run("promtool", "check", "config", folder / "prometheus.yml")
    variables = environment(
        **NO_DRAIN, FRONTDESK_PORT=str(port), FRONTDESK_METRICS_TOKEN=TOKEN,
        FRONTDESK_LOG_LEVEL="error",
    )  # fmt: skip
    command = ["prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data"]
    command.append(f"--web.listen-address=127.0.0.1:{own_port}")
    service, url = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{own_port}"
    with running([COMMAND, "serve", "--demo"], folder=folder, variables=variables, url=service):
        httpx.get(f"{service}/api/providers", timeout=30)
        log = (folder / "prometheus.log").open("wb")
        process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            wait_until_up(url)
            yield url
        finally:
            process.kill()
            process.wait()
            log.close()


def wait_until_up(url: str) -> None:
    """Until the service was scraped often enough for rates."""
    deadline = time.monotonic() + WAIT_TIMEOUT
    while time.monotonic() < deadline:
        with contextlib.suppress(httpx.TransportError):
            ready = httpx.get(f"{url}/-/ready", timeout=30).status_code == 200
            if ready and query(url, 'sum_over_time(up{job="frontdesk"}[1m]) >= 3 and up == 1').get("result"):
                return
        time.sleep(0.2)
    raise AssertionError("Prometheus does not scrape the service")


def query(url: str, expression: str) -> dict[str, Any]:
    answer = httpx.get(f"{url}/api/v1/query", params={"query": expression}, timeout=30).json()
    assert answer["status"] in ("success", "error"), answer
    assert answer.get("errorType") in (None, "unavailable"), (expression, answer)
    found: dict[str, Any] = answer.get("data", {})
    return found


def shown(url: str, expression: str, *, wait: bool) -> bool:
    """Whether there is something. A scrape that the service did not answer in time leaves nothing until the next."""
    deadline = time.monotonic() + (WAIT_TIMEOUT if wait else 0)
    while not query(url, expression)["result"]:
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.2)
    return True


def test_every_panel_shows_what_prometheus_scrapes(prometheus: str) -> None:
    empty = set()
    for panel in DASHBOARD["panels"]:
        for target in panel.get("targets", ()):
            expression = target["expr"].replace("$__rate_interval", "1m")
            for variable in ("$instance", "$door"):
                expression = expression.replace(variable, ".*")
            assert "$" not in expression
            if not shown(prometheus, expression, wait=panel["title"] not in OFTEN_EMPTY):
                empty.add(panel["title"])
    assert empty <= OFTEN_EMPTY


def test_the_rules_are_loaded_and_a_new_service_alerts_nobody(prometheus: str) -> None:
    groups = httpx.get(f"{prometheus}/api/v1/rules", timeout=30).json()["data"]["groups"]
    states = {rule["name"]: rule["state"] for group in groups for rule in group["rules"]}
    written = yaml.safe_load((RULES / "alerts.yml").read_text())["groups"][0]["rules"]
    assert states.keys() == {rule["alert"] for rule in written}
    assert {name for name, state in states.items() if state == "firing"} == set()
