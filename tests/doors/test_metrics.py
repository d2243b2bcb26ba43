"""/metrics: what is counted, who may read it, and what is never in it."""

import asyncio
import json
import logging
import re
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
import yaml

from frontdesk.app import Service, _metrics, build_app, build_background
from frontdesk.domain.errors import CATALOGUE
from frontdesk.doors import docs as guides
from frontdesk.doors import worker_numbers
from frontdesk.doors.worker_numbers import mark_as_ended
from frontdesk.logs import request_labels
from frontdesk.settings import Settings
from frontdesk.store import database as store
from frontdesk.store import queues
from tests.support.running import running
from tests.support.shared_database import world_of_a_module
from tests.support.world import World

MCP_HEADERS = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
GUIDE = Path(guides.__file__).parent / "guides" / "operating.md"
ROOT = Path(__file__).parents[2]
ALERTS = ROOT / "deploy" / "prometheus" / "alerts.yml"
DASHBOARD = json.loads((ROOT / "deploy" / "grafana" / "frontdesk.json").read_text())
OF_COMPOSE = "frontdesk_dump_"  # written by deploy/compose/backup.sh; tests/deploy/test_compose.py reads them
EXPRESSIONS = [
    *(
        rule["expr"]
        for rule in yaml.safe_load(ALERTS.read_text())["groups"][0]["rules"]
        if OF_COMPOSE not in rule["expr"]
    ),
    *(target["expr"] for panel in DASHBOARD["panels"] for target in panel.get("targets", ())),
]
MATCHER = re.compile(r'([a-z]+)(=~|!=|=)"([^"]*)"')
SELECTOR = re.compile(r"\b(frontdesk_[a-z_]+)(\{[^}]*\})?")
TOKEN = "a token for the scraper"


world = world_of_a_module


@pytest.fixture
async def measured(world: World, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[Service, httpx.AsyncClient]]:
    """The service with metrics on. A database that is slow to answer is up all the same."""
    for measuring in (store, queues):
        monkeypatch.setattr(measuring, "_MEASURE_SECONDS", 30)
    settings = world.service.settings.model_copy(update={"metrics_token": TOKEN})
    metrics = _metrics(settings, world.database)
    assert metrics is not None
    service = replace(world.service, metrics=metrics)
    build_background(service)
    app = build_app(service)
    async with (
        running(metrics.step),
        httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://test") as client,
    ):
        yield service, client


@pytest.fixture(autouse=True)
def request_log() -> Iterator[None]:
    """As it was, after a test has turned metrics on."""
    requests = logging.getLogger("frontdesk.request")
    before = (requests.propagate, requests.level, list(requests.handlers))
    yield
    requests.propagate, requests.level, requests.handlers = before


async def test_there_is_no_metrics_page_unless_a_token_was_set(world: World) -> None:
    answer = await world.anonymous().get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


async def test_metrics_need_their_token(measured: tuple[Service, httpx.AsyncClient], world: World) -> None:
    _, client = measured
    other = (await world.client()).headers["Authorization"]
    for authorization in ("", f"Bearer {TOKEN}x", TOKEN, other):
        answer = await client.get("/metrics", headers={"Authorization": authorization})
        assert (answer.status_code, answer.json()["code"]) == (401, "unauthorized")


async def scrape(client: httpx.AsyncClient) -> dict[str, float]:
    answer = await client.get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert answer.headers["cache-control"] == "no-store"
    assert re.fullmatch("[0-9a-f]{32}", answer.headers["x-svc-trace-id"])
    series = {}
    for line in answer.text.splitlines():
        assert re.fullmatch(r"# (HELP|TYPE) .+|[a-z_]+(\{[^}]*\})? [0-9.e+-]+", line), line
        if not line.startswith("#"):
            name, _, value = line.rpartition(" ")
            assert name not in series
            series[name] = float(value)
    return series


async def test_metrics_count_by_door_operation_and_code(
    measured: tuple[Service, httpx.AsyncClient], world: World
) -> None:
    _, client = measured
    await asyncio.sleep(0)
    token = {"Authorization": (await world.client(per_minute=5)).headers["Authorization"]}
    for _ in range(2):
        await client.get("/api/capabilities", headers=token)
    await client.get("/api/slots", headers=token)
    await client.get("/api/nowhere", headers=token)
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "get_practice", "arguments": {}}}
    await client.post("/mcp", json=call, headers={**MCP_HEADERS, **token})
    await client.get("/api/capabilities", headers=token)
    await client.get("/console/calendar")
    series = await scrape(client)
    counted = 'frontdesk_requests_total{code="%s",door="%s",operation="%s"}'
    assert series[counted % ("200", "rest", "get_capabilities")] == 2
    assert series[counted % ("422", "rest", "search_slots")] == 1
    assert series[counted % ("404", "rest", "")] == 1
    assert series[counted % ("200", "mcp", "get_practice")] == 1
    assert series[counted % ("429", "gateway", "")] == 1
    assert series[counted % ("200", "oauth", "token")] == 1
    assert series[counted % ("303", "console", "/calendar")] == 1
    timed = 'door="rest",operation="get_capabilities"'
    assert series['frontdesk_request_seconds_bucket{door="rest",le="+Inf",operation="get_capabilities"}'] == 2
    assert series[f"frontdesk_request_seconds_count{{{timed}}}"] == 2
    assert 0 < series[f"frontdesk_request_seconds_sum{{{timed}}}"] < 10
    assert series['frontdesk_answer_cache_lookups_total{operation="get_practice",result="miss"}'] >= 1
    assert series["frontdesk_database_up"] == 1
    assert series["frontdesk_database_bytes"] > 1_000_000
    assert sum(value for name, value in series.items() if name.startswith("frontdesk_database_connections{")) == 16
    assert series['frontdesk_errors_total{door="rest",error="validation",operation="search_slots"}'] == 1
    assert series['frontdesk_errors_total{door="gateway",error="rate_limited",operation=""}'] == 1
    assert series['frontdesk_client_limit_refusals_total{limit="matches"}'] == 0
    assert series['frontdesk_webhook_deliveries{state="due"}'] == 0
    text = "\n".join(series)
    assert "harbor" not in text
    assert "fd_" not in text


async def test_the_guide_names_every_metric(measured: tuple[Service, httpx.AsyncClient]) -> None:
    _, client = measured
    await client.get("/api/practice")
    exposed = {re.sub("_(bucket|count|sum)$", "", name.partition("{")[0]) for name in await scrape(client)}
    named = set(re.findall("`(frontdesk_[a-z_]+)`", GUIDE.read_text().partition("## Metrics")[2]))
    assert exposed == named


async def test_dashboard_and_alerts_use_metrics_that_exist(
    measured: tuple[Service, httpx.AsyncClient], world: World
) -> None:
    _, client = measured
    token = {"Authorization": (await world.client()).headers["Authorization"]}
    for path in ("/api/practice", "/api/nowhere"):
        await client.get(path, headers=token)
    known: dict[str, dict[str, set[str]]] = {}  # values by metric and label
    for series in await scrape(client):
        name, _, given = series.partition("{")
        known.setdefault(name, {"instance": set(), "job": set()})
        for label, _, value in MATCHER.findall(given):
            known[name].setdefault(label, set()).add(value)
    for expression in EXPRESSIONS:
        used = SELECTOR.findall(expression)
        for name, given in used:
            assert name in known, name
            for label, operator, value in MATCHER.findall(given):
                assert label in known[name], (name, label)
                if operator != "=~" and label in ("state", "result", "kind", "step", "limit", "status"):
                    assert value in known[name][label], (name, label, value)
                elif label == "error":
                    assert value in CATALOGUE
        grouped = {label for labels in re.findall("by \\(([a-z, ]+)\\)", expression) for label in labels.split(", ")}
        assert grouped <= {"le"}.union(*(known[name] for name, _ in used)), expression
    assert {name for expression in EXPRESSIONS for name, _ in SELECTOR.findall(expression)} == {
        name for name in known if not name.endswith(("_count", "_sum"))
    }, "the dashboard shows every metric"


def test_every_alert_has_a_runbook_and_is_tested() -> None:
    rules = {rule["alert"]: rule for rule in yaml.safe_load(ALERTS.read_text())["groups"][0]["rules"]}
    runbook = (ROOT / "docs" / "users" / "alerts.md").read_text()
    assert set(re.findall("^### (\\w+)\n\n\\w", runbook, re.MULTILINE)) == rules.keys()
    for name, rule in rules.items():
        assert rule["annotations"]["runbook"] == f"docs/users/alerts.md#{name.lower()}"
        assert rule["labels"]["severity"] in ("critical", "warning", "info")
    fires, stays_silent = set(), set()
    for case in yaml.safe_load((ALERTS.parent / "alerts.test.yml").read_text())["tests"]:
        for check in case["alert_rule_test"]:
            (fires if check["exp_alerts"] else stays_silent).add(check["alertname"])
    assert fires == stays_silent == rules.keys()


async def test_counters_and_gauges_that_are_added_are_read_at_every_scrape(
    measured: tuple[Service, httpx.AsyncClient],
) -> None:
    service, client = measured
    assert service.metrics is not None
    lookups, failing = {("hit",): 2.0}, {("sealer",): 1.0}
    service.metrics.add_counter("frontdesk_lookups", "Lookups.", ("result",), lambda: lookups)
    service.metrics.add_gauge("frontdesk_failing", "Failing steps.", ("step",), lambda: failing)
    for total in (2.0, 5.0):
        lookups["hit",] = total
        assert (await scrape(client))['frontdesk_lookups_total{result="hit"}'] == total
    failing["sealer",] = 0.0
    assert (await scrape(client))['frontdesk_failing{step="sealer"}'] == 0


async def test_metrics_say_when_the_database_is_down(measured: tuple[Service, httpx.AsyncClient], world: World) -> None:
    _, client = measured
    await world.database.close()
    try:
        async with asyncio.timeout(30):
            series = await scrape(client)
    finally:
        await world.database.open()
    assert series["frontdesk_database_up"] == 0


async def test_totals_of_a_worker_that_ended_stay_and_its_gauges_go(
    tmp_path: Path, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(data_dir=tmp_path, metrics_token=TOKEN, workers=2)
    folder = settings.metrics_folder
    assert folder is not None
    folder.mkdir(parents=True)
    workers = []
    for pid in (1, 2):
        monkeypatch.setattr(worker_numbers.os, "getpid", lambda pid=pid: pid)
        metrics = _metrics(settings, world.database)
        assert metrics is not None
        metrics.add_counter("calls", "Calls.", (), lambda pid=pid: {(): 10 * pid})
        metrics.add_gauge("waiting", "Callers that wait.", (), lambda pid=pid: {(): pid})
        metrics.add_gauge("oldest", "The oldest.", (), lambda pid=pid: {(): pid}, min)
        metrics.observe(request_labels("rest", "get_practice", None, None, None, "GET", 200, None), pid, "id")
        await metrics.publish()
        workers.append(metrics)

    async def lines() -> set[str]:
        return {line.replace(".0", "") for line in (await workers[1]._text()).decode().splitlines()}

    requests = 'frontdesk_request_seconds_count{door="rest",operation="get_practice"} 2'
    assert await lines() >= {"calls_total 30", "waiting 3", "oldest 1", requests}
    mark_as_ended(folder, 1, 0)
    assert await lines() >= {"calls_total 30", "waiting 2", "oldest 2", requests}
