"""What one search over MCP costs the server's CPU, against the same search over REST, in one run.

Starts a real server with the demo practice in a folder of its own, and sends it the same 14-day search of 50 slots over
REST and over both eras of MCP, in turn. Counted is the CPU time of the server's processes, HTTP included; PostgreSQL is
not counted, since it does the same for each. Prints medians over the rounds and the ratios to REST.

    .venv/bin/python bench/mcp_cost.py [--json]
"""

import argparse
import contextlib
import http.client
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

TARGET = 1.5
ROUNDS, CALLS, WARM_UP = 15, 200, 300
META = "io.modelcontextprotocol/"
FRONTDESK = str(Path(sys.executable).parent / "frontdesk")


@contextlib.contextmanager
def served(folder: str) -> Iterator[tuple[int, int, dict[str, str]]]:
    """The port, the server's process id and the credentials of a client without a cap worth mentioning."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    environment = {**os.environ, "FRONTDESK_DATA_DIR": folder, "FRONTDESK_LOG_LEVEL": "warning"}
    server = subprocess.Popen(
        [FRONTDESK, "serve", "--demo", "--json", "--port", str(port)],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert server.stdout is not None
        for line in server.stdout:
            if line.startswith("}"):
                break
        add = "client add --practice demo --name bench --grant integration --scope all"
        add += " --per-minute 100000000 --quota 1000000000000"
        added = subprocess.run([FRONTDESK, *add.split(), "--json"], env=environment, check=True, capture_output=True)
        yield port, server.pid, json.loads(added.stdout)
    finally:
        os.killpg(server.pid, signal.SIGINT)  # without a drain
        server.wait()


def cpu_nanoseconds(server: int) -> int:
    """Of the server and its workers, every thread."""
    children = Path(f"/proc/{server}/task/{server}/children").read_text().split()
    files = [path for pid in (str(server), *children) for path in Path(f"/proc/{pid}/task").glob("*/schedstat")]
    return sum(int(path.read_text().split()[0]) for path in files)


class Calls:
    """One keep-alive connection, and the same search over each door."""

    def __init__(self, port: int, credentials: dict[str, str]) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port)
        form = {
            "grant_type": "client_credentials",
            "client_id": credentials["clientId"],
            "client_secret": credentials["clientSecret"],
        }
        answer = self._send(
            "POST", "/oauth/token", urlencode(form), {"Content-Type": "application/x-www-form-urlencoded"}
        )
        self._headers = {"Authorization": f"Bearer {json.loads(answer)['access_token']}"}
        wanted = urlencode({"visitTypeId": 21, "procedureId": 102})
        slot = json.loads(self._send("GET", f"/api/slots/first-available?{wanted}", None, self._headers))["items"][0]
        first = datetime.now(UTC).date() + timedelta(days=1)
        self._query = {name: slot[name] for name in ("providerId", "locationId", "visitTypeId", "procedureId")} | {
            "from": first.isoformat(),
            "to": (first + timedelta(days=14)).isoformat(),
        }

    def rest(self) -> Any:
        return json.loads(self._send("GET", f"/api/slots?{urlencode(self._query)}", None, self._headers))

    def handshake(self) -> Any:
        return self._mcp({}, {"MCP-Protocol-Version": "2025-11-25"})

    def modern(self) -> Any:
        meta = {
            f"{META}protocolVersion": "2026-07-28",
            f"{META}clientInfo": {"name": "bench", "version": "1"},
            f"{META}clientCapabilities": {},
        }
        mirrored = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "search_slots"}
        return self._mcp({"_meta": meta}, mirrored)

    def _mcp(self, params: dict[str, Any], headers: dict[str, str]) -> Any:
        params = {"name": "search_slots", "arguments": self._query, **params}
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
        accepted = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        answer = self._send("POST", "/mcp", body, {**self._headers, **accepted, **headers})
        return json.loads(answer.split(b"data: ", 1)[1])["result"]["structuredContent"]

    def _send(self, method: str, path: str, body: str | None, headers: dict[str, str]) -> bytes:
        self._connection.request(method, path, body, headers)
        answer = self._connection.getresponse()
        content = answer.read()
        assert answer.status == http.client.OK, content
        return content


def measure(server: int, calls: Calls) -> dict[str, list[float]]:
    """Microseconds of CPU per call and round."""
    ways: dict[str, Callable[[], Any]] = {
        "REST": calls.rest,
        "MCP 2025-11-25": calls.handshake,
        "MCP 2026-07-28": calls.modern,
    }
    answers = [call() for call in ways.values()]
    assert all(answer == answers[0] for answer in answers), "the doors disagree"
    print(f"{len(answers[0]['items'])} slots per search", file=sys.stderr)
    for call in ways.values():
        for _ in range(WARM_UP):
            call()
    costs: dict[str, list[float]] = {way: [] for way in ways}
    for number in range(ROUNDS):
        print(f"\rround {number + 1} of {ROUNDS}", end="", file=sys.stderr, flush=True)
        for way, call in ways.items():
            before = cpu_nanoseconds(server)
            for _ in range(CALLS):
                call()
            costs[way].append((cpu_nanoseconds(server) - before) / CALLS / 1000)
    print(file=sys.stderr)
    return costs


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of a table")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, served(folder) as (port, server, credentials):
        costs = measure(server, Calls(port, credentials))
    rest = statistics.median(costs["REST"])
    ratios = {way: statistics.median(cost) / rest for way, cost in costs.items()}
    if options.json:
        print(json.dumps({"microseconds": costs, "ratios": ratios, "target": TARGET}))
    else:
        for way, cost in costs.items():
            spread = f"({min(cost):.0f} to {max(cost):.0f})"
            print(f"{way:16} {statistics.median(cost):7.0f} us of CPU {spread:14} {ratios[way]:.2f} of REST")
    return 0 if max(ratios.values()) <= TARGET else 1


if __name__ == "__main__":
    sys.exit(main())
