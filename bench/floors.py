"""Floors: what the machine, the HTTP server and PostgreSQL can do without the service's own work, in the same run.

(a) the same HTTP server with the same settings, answering with the very bytes of a real answer, headers included, from
memory; (b) pgbench with the statements of a two-phase booking, as the service's role, over the same socket with as many
connections as the service's pool; (c) the smallest answer that a bare ASGI handler can give on that server.

    .venv/bin/python bench/floors.py PORT ANSWERS.json     serves (a) and (c) until it is told to stop
"""

import base64
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from practices import DAYS, FIRST_BOOKED_MINUTE, LOCATION, MINUTES, PROCEDURE, VISIT_TYPE, Slots, first_day
from service import Service, children, exchange, free_port

from frontdesk.domain.local_time import minute_of
from frontdesk.serving import serve
from frontdesk.settings import Settings
from frontdesk.store.database import SERVICE_ROLE
from frontdesk.store.embedded.account import wheel_binaries

BARE = "/bare"
POOL = Settings().database_pool_size
_FILE = "FLOOR_ANSWERS"
_ADDED_BY_SERVER = ("date", "server", "connection", "transfer-encoding")
_answers: dict[tuple[str, bytes], tuple[list[tuple[bytes, bytes]], bytes]] = {}  # headers and body by path and query


async def from_memory(scope: dict[str, Any], _receive: Any, send: Any) -> None:
    if scope["type"] == "http":
        headers, body = _answers[scope["path"], scope["query_string"]]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})


@dataclass(frozen=True)
class Floor:
    port: int
    pid: int

    @property
    def processes(self) -> dict[str, list[int]]:
        return {"service": [self.pid, *children(self.pid)]}


@contextlib.contextmanager
def memory_server(service: Service, paths: list[str], token: str, folder: Path) -> Iterator[Floor]:
    """Serves what the service answers now under these paths (with their queries)."""
    recorded = {}
    for path in paths:
        status, headers, body = exchange(service.port, "GET", path, headers={"Authorization": f"Bearer {token}"})
        assert status == 200, body
        kept = [(name, value) for name, value in headers if name not in _ADDED_BY_SERVER]
        recorded[path] = [kept, base64.b64encode(body).decode()]
    for path in (BARE, "/readyz"):
        recorded[path] = [[("content-length", "2")], base64.b64encode(b"ok").decode()]
    file = folder / "answers.json"
    file.write_text(json.dumps(recorded))
    port = free_port()
    server = subprocess.Popen(
        [sys.executable, __file__, str(port), str(file)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        assert server.stdout is not None
        assert server.stdout.readline(), "the floor's server did not start"
        yield Floor(port, server.pid)
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(30)


_CHANGE = f"""jsonb_build_object('version', :version::bigint, 'appointmentId', 'apt_' || md5(:k::text),
    'patientId', 'pat_' || lpad(:patient::text, 22, '0'), 'providerId', :provider::integer, 'locationId', {LOCATION},
    'visitTypeId', {VISIT_TYPE}, 'procedureId', {PROCEDURE}, 'startsAt', to_timestamp(:starts * 60.0),
    'endsAt', to_timestamp(:ends * 60.0), 'busyUntil', to_timestamp(:ends * 60.0))"""
# The statements of one two-phase booking as the service makes them: one for the challenge, one for the confirmation.
_BOOKING = f"""
\\set i :i + 1
\\set k :first + :client_id + :i * {POOL}
\\set provider 1 + :k % :providers
\\set day :today + (:k / :providers) % {DAYS} * 1440
\\set starts :day + {FIRST_BOOKED_MINUTE} + :k / (:providers * {DAYS}) * {MINUTES}
\\set ends :starts + {MINUTES}
\\set patient 1 + :k % :patients
SELECT * FROM issue_challenge(:practice, sha256(:k::text::bytea), 'client', 'book_appointment',
    sha256('fingerprint'::bytea), now(), now() + interval '10 minutes',
    ARRAY['pat_' || lpad(:patient::text, 22, '0')], :k::text, '{{}}', {_CHANGE}, '{{}}', NULL);
SELECT * FROM commit_write(:practice, 'book', {_CHANGE}, 'client', 'book_appointment', :k::text, now(),
    sha256(:k::text::bytea), false, sha256('fingerprint'::bytea), now() + interval '24 hours');
"""


class BookingFloor:
    """pgbench booking its way through a practice of its own, which looks like the one that the service books in."""

    def __init__(self, service: Service, practice_id: int, slots: Slots) -> None:
        self._service, self._slots, self._first, self._id = service, slots, 0, practice_id
        self._version = service.query("SELECT version FROM practice WHERE practice_id = $1", practice_id)[0][0]
        self._script = service.folder / "booking.sql"
        self._script.write_text(_BOOKING)

    def run(self, seconds: int) -> float:
        """Bookings per second. Whether they were bookings is checked: a refusal would be no error to pgbench."""
        variables = {
            "i": -1,
            "first": self._first,
            "practice": self._id,
            "version": self._version,
            "providers": self._slots.providers,
            "patients": self._slots.patients,
            "today": minute_of(first_day()),
        }
        before = self._booked()
        done = subprocess.run(
            [
                *(str(wheel_binaries() / "pgbench"), "-n", "-M", "prepared", "-c", str(POOL), "-j", "1"),
                *("-T", str(seconds), "-f", str(self._script)),
                *(f"--define={name}={value}" for name, value in variables.items()),
                self._service.postgres.dsn(SERVICE_ROLE),
            ],
            env={"PATH": os.defpath, "PGOPTIONS": "-c search_path=frontdesk,public -c timezone=UTC"},
            check=False,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise RuntimeError(f"pgbench could not run the statements of a booking: {done.stderr[-500:]}")
        count, rate = (
            float(found.group(1))
            for found in (
                re.search(r"transactions actually processed: (\d+)", done.stdout),
                re.search(r"tps = ([\d.]+)", done.stdout),
            )
            if found is not None
        )
        assert self._booked() - before == count, "pgbench's bookings were refused"
        self._first += 2 * int(count) + 1000  # its clients do not keep step: some are further than the average
        return rate

    def _booked(self) -> int:
        sql = "SELECT count(*) FROM appointment WHERE practice_id = $1 AND booked_by = 'client'"
        found: int = self._service.query(sql, self._id)[0][0]
        return found


def create(_on_database_down: Any) -> Any:
    """What the floor's worker serves."""
    for address, (headers, body) in json.loads(Path(os.environ[_FILE]).read_text()).items():
        raw = [(name.encode(), value.encode()) for name, value in headers]
        path, _, query = address.partition("?")
        _answers[path, query.encode()] = raw, base64.b64decode(body)
    return from_memory


def _serve(port: int, file: str) -> None:
    os.environ |= {_FILE: file, "PYTHONPATH": str(Path(__file__).parent)}
    # The same server with the same settings: only what its worker runs is another.
    serve(Settings(port=port), lambda: lambda: print("ready", flush=True), "floors:create")


if __name__ == "__main__":
    _serve(int(sys.argv[1]), sys.argv[2])
