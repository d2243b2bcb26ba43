"""The official conformance suites, both releases: what applies to a stateless server of tools passes, and the rest is
listed with its reason in conformance-baseline.txt. A listed scenario that passes is as wrong as an unlisted that fails.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import asyncpg
import httpx
import orjson
import pytest

from tests.mcp.node_clients import NodeClients
from tests.mcp.proxy import Equivalent, authorizing_proxy
from tests.mcp.served import Served
from tests.support.world import patient_id

pytestmark = pytest.mark.heavy

BASELINE = Path(__file__).parent / "conformance-baseline.txt"
RELEASES = {
    "0.1.16": ("conformance-stable/dist/index.js", "--suite", "all"),
    "0.2.0-alpha.12": ("conformance-next/dist/index.js", "--requirements", "2026-07-28"),
}
MUST_PASS = {
    "0.1.16": {
        "server-initialize", "ping", "tools-list", "tools-call-simple-text", "tools-call-error",
        "tools-call-elicitation", "resources-list", "dns-rebinding-protection",
    },
    "0.2.0-alpha.12": {
        "tools-list", "tools-call-simple-text", "tools-call-error", "server-sse-multiple-streams",
        "dns-rebinding-protection", "http-header-validation", "resources-list",
        "input-required-result-basic-elicitation", "input-required-result-request-state",
        "input-required-result-result-type", "input-required-result-tampered-state",
        "input-required-result-missing-input-response", "input-required-result-validate-input",
        "input-required-result-unsupported-methods",
    },
}  # fmt: skip

UNMET = frozenset(("FAILURE", "WARNING"))  # what is not met of a MUST, and of a SHOULD
AGREED = {"0.1.16": 1, "0.2.0-alpha.12": 2}


def equivalents(change: Mapping[str, str]) -> dict[str, Equivalent]:
    """Tools of the suites' sample server, and the one of ours that answers alike: text, an error, or a question."""
    asks = Equivalent("update_patient", change)
    return {
        "test_simple_text": Equivalent("get_capabilities"),
        "test_error_handling": Equivalent("get_slot"),
        "test_logging_tool": Equivalent("get_capabilities"),
        "test_streaming_elicitation": Equivalent("get_capabilities"),
        "test_elicitation": asks,
        "test_input_required_result_elicitation": replace(asks, question="user_name"),
        "test_input_required_result_request_state": asks,
        "test_input_required_result_tampered_state": asks,
    }


def baseline(release: str) -> dict[str, str]:
    """Reasons by scenario, or by scenario:check where the rest of the scenario passes."""
    lines = [line.split(maxsplit=2) for line in BASELINE.read_text().splitlines() if line and line[0] != "#"]
    assert all(len(line) == 3 for line in lines), "every line is a release, a scenario and a reason"
    return {scenario: reason for of, scenario, reason in lines if of == release}


def outcomes(folder: Path) -> dict[str, dict[str, str]]:
    """The status of every check, by scenario; a check that was made several times counts as its worst."""
    found: dict[str, dict[str, str]] = {}
    for file in folder.glob("*/checks.json"):
        named = re.fullmatch(r"server-(.+)-\d{4}-\d\d-\d\dT[\d-]+Z", file.parent.name)
        assert named is not None
        checks = found.setdefault(named.group(1), {})
        for check in orjson.loads(file.read_bytes()):
            if checks.get(check["id"]) not in UNMET:
                checks[check["id"]] = check["status"]
    return found


def judged(found: Mapping[str, Mapping[str, str]], expected: Mapping[str, str]) -> tuple[set[str], set[str]]:
    """What failed without being listed, and what is listed without having failed."""
    failures = {f"{name}:{check}" for name, checks in found.items() for check, was in checks.items() if was in UNMET}
    covered = {failure for failure in failures if failure in expected or failure.split(":")[0] in expected}
    needed = covered | {failure.split(":")[0] for failure in covered}
    return failures - covered, set(expected) - needed


def test_the_baseline_is_exact_in_both_directions() -> None:
    found = {"one": {"a": "SUCCESS", "b": "FAILURE"}, "two": {"c": "SUCCESS"}}
    assert judged(found, {"one": "why"}) == (set(), set())
    assert judged(found, {"one:b": "why"}) == (set(), set())
    assert judged(found, {}) == ({"one:b"}, set())
    assert judged(found, {"one:a": "why", "two": "why"}) == ({"one:b"}, {"one:a", "two"})


@pytest.mark.parametrize("release", RELEASES)
async def test_the_conformance_suite_finds_nothing_new(
    served: Served, node: NodeClients, owner: asyncpg.Connection, tmp_path: Path, release: str
) -> None:
    program, *options = RELEASES[release]
    folder = tmp_path / "results"
    practice = await served.practice_that_demands(updatePatient="elicitation")
    token = await served.token(practice=practice, trusted_to_ask=True)
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(base_url=served.url, headers=headers, timeout=30) as http:
        change = {"patientId": await patient_id(http), "email": "ada@example.com"}
    async with authorizing_proxy(served.port, token, equivalents(change)) as port:
        url = f"http://127.0.0.1:{port}/mcp"
        run = await node.run(program, "server", "--url", url, *options, "-o", str(folder), home=tmp_path)
    assert "=== SUMMARY ===" in run.output, run.errors[-2000:]
    found = outcomes(folder)
    assert judged(found, baseline(release)) == (set(), set())
    for scenario in MUST_PASS[release]:
        assert "SUCCESS" in found[scenario].values(), scenario
    agreed = "SELECT count(*) FROM audit_record WHERE outcome = 'executed' AND consent = 'elicitation'"
    assert await owner.fetchval(agreed) == AGREED[release], "only where the suite's user agreed"
    checks = [was for scenario in found.values() for was in scenario.values()]
    passing = [name for name, of in found.items() if UNMET.isdisjoint(of.values())]
    print(f"\n{release}: {len(passing)} of {len(found)} scenarios, {checks.count('SUCCESS')} checks pass")
