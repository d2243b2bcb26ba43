"""The load generator: keep-alive connections, driven from one thread of a process of its own.

Owns the wire on the client's side and the clock. Every connection follows a script: a generator that yields requests
and is sent the answers. Two ways of driving: as fast as the answers come, or at a given rate, where an answer's time
counts from the moment its request was due, so that a stall is charged to every request it held up. Linux only (epoll).
"""

import gc
import itertools
import json
import select
import socket
import time
from array import array
from collections import Counter, deque
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta

from practices import LOCATION, PROCEDURE, VISIT_TYPE

Answer = tuple[int, bytes]
Script = Generator[bytes, Answer, None]

PATIENTS = 2400  # of a practice that conversations book in
_CHUNK = 1 << 18
_LENGTH = b"content-length: "


@dataclass
class Measured:
    """What a run saw until its time was over. `tally` is what its scripts counted, `drained` has what came late too."""

    seconds: float
    answers: int
    statuses: dict[int, int]
    p50: float
    p99: float
    generator: float
    """The share of one core that the generator itself used."""
    tally: dict[str, int]
    drained: dict[str, int]
    costs: dict[str, float] = field(default_factory=dict)
    """Microseconds of CPU per answer, by who spent them; filled in by whoever knows the processes."""

    def rate(self, counted: str | None = None) -> float:
        return (self.answers if counted is None else self.tally.get(counted, 0)) / self.seconds


class Running:
    """What the scripts of one run share."""

    def __init__(self) -> None:
        self.over = False
        self.tally: Counter[str] = Counter()
        self.drained: Counter[str] = Counter()

    def count(self, what: str) -> None:
        self.drained[what] += 1
        if not self.over:
            self.tally[what] += 1


class _Connection:
    __slots__ = ("began", "idle_since", "request", "rest", "script", "socket")

    def __init__(self, port: int, script: Script) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.script = script
        self.request = next(script)
        self.rest = b""
        self.began = self.idle_since = 0.0

    def send(self, began: float) -> None:
        self.began = began
        self.socket.sendall(self.request)

    def receive(self) -> Answer | None:
        """The answer, None while it is incomplete."""
        data = self.socket.recv(_CHUNK)
        if not data:
            raise ConnectionError("the server closed a keep-alive connection")
        if self.rest:
            data = self.rest + data
        head = data.find(b"\r\n\r\n")
        if head > 0:
            at = data.find(_LENGTH, 0, head)
            if at < 0:
                raise ValueError("an answer without a length cannot be measured")
            at += len(_LENGTH)
            if len(data) >= head + 4 + int(data[at : data.find(b"\r", at)]):
                self.rest = b""
                return int(data[9:12]), data[head + 4 :]
        self.rest = data
        return None


def drive(port: int, scripts: Iterable[Script], running: Running, seconds: float, rate: float | None) -> Measured:
    connections = {(each := _Connection(port, script)).socket.fileno(): each for script in scripts}
    poll = select.epoll()
    for number in connections:
        poll.register(number, select.EPOLLIN)
    latencies, statuses = array("d"), Counter[int]()
    idle: deque[_Connection] = deque()
    active = len(connections)
    gc.disable()
    clock, cpu_began = time.perf_counter, time.process_time()
    cpu = 0.0
    began = due = clock()
    deadline = began + seconds
    for each in connections.values():
        each.idle_since = began
        idle.append(each) if rate else each.send(began)
    while active:
        now = clock()
        if now >= deadline and not running.over:
            running.over = True
            cpu = time.process_time() - cpu_began
            active -= len(idle)
            idle.clear()
            continue
        timeout = -1.0 if running.over or deadline == float("inf") else deadline - now
        if rate and not running.over:
            while idle and due <= now:
                each = idle.popleft()
                # A timer that fires late is the generator's fault; a connection that was not free is the server's.
                each.send(now if each.idle_since <= due else due)
                due += 1 / rate
            if idle:
                timeout = min(timeout, due - now)
        for number, _ in poll.poll(timeout):
            each = connections[number]
            answer = each.receive()
            if answer is None:
                continue
            now = clock()
            if not running.over:
                latencies.append(now - each.began)
                statuses[answer[0]] += 1
            try:
                each.request = each.script.send(answer)
            except StopIteration:
                active -= 1
                continue
            if not rate:
                each.send(now)
            elif running.over:
                active -= 1
            else:
                each.idle_since = now
                idle.append(each)
    for each in connections.values():
        each.socket.close()
    gc.enable()
    ordered = sorted(latencies) or [0.0]
    return Measured(
        seconds,
        len(latencies),
        dict(statuses),
        p50=ordered[len(ordered) // 2],
        p99=ordered[min(len(ordered) - 1, len(ordered) * 99 // 100)],
        generator=cpu / seconds,
        tally=dict(running.tally),
        drained=dict(running.drained),
    )


def request(method: str, path: str, token: str, body: object = None, headers: Sequence[str] = ()) -> bytes:
    content = b"" if body is None else json.dumps(body).encode()
    lines = [f"{method} {path} HTTP/1.1", "Host: bench", f"Authorization: Bearer {token}", "Accept: application/json"]
    if body is not None:
        lines += ["Content-Type: application/json", f"Content-Length: {len(content)}"]
    return "\r\n".join([*lines, *headers, "", ""]).encode() + content


def repeat(
    port: int, requests: Sequence[bytes], connections: int, seconds: float, rate: float | None = None
) -> Measured:
    """The same requests over and over, every connection beginning at another one. Anything but 200 is an error."""
    running = Running()

    def script(first: int) -> Script:
        own = itertools.cycle([*requests[first:], *requests[:first]])
        while not running.over:
            _expect_success(*(yield next(own)))

    scripts = [script(number % len(requests)) for number in range(connections)]
    return drive(port, scripts, running, seconds, rate)


def each_once(port: int, requests: Sequence[bytes], connections: int, seconds: float) -> Measured:
    """Every request once, whichever connection is free."""
    running, wanted = Running(), iter(requests)

    def script() -> Script:
        for each in wanted:
            _expect_success(*(yield each))
            if running.over:
                return
        if not running.over:
            raise ValueError("more requests are needed to keep the run going")

    return drive(port, [script() for _ in range(connections)], running, seconds, None)


def all_once(port: int, requests: Sequence[bytes], connections: int) -> Measured:
    """Every request once, whichever connection is free, however long it takes."""
    running, wanted = Running(), iter(requests)

    def script() -> Script:
        for each in wanted:
            _expect_success(*(yield each))

    return drive(port, [script() for _ in range(connections)], running, float("inf"), None)


def one_by_one(port: int, wanted: Sequence[bytes], before: Sequence[bytes] = ()) -> float:
    """Seconds per call on one connection, for what is too slow to count in a short time; `before` is not timed."""
    began = time.perf_counter()

    def script() -> Script:
        nonlocal began
        for each in before:
            _expect_success(*(yield each))
            began = time.perf_counter()
        for each in wanted:
            _expect_success(*(yield each))

    drive(port, [script()], Running(), float("inf"), None)
    return (time.perf_counter() - began) / len(wanted)


Booking = tuple[str, str, str]  # token, slot, patient


def book(
    port: int, bookings: Sequence[Booking], connections: int, seconds: float, rate: float | None = None
) -> Measured:
    """Bookings of slots that nobody else wants; anything but success is an error."""
    running, wanted = Running(), iter(bookings)

    def script() -> Script:
        for each in wanted:
            _expect_booked((yield from _booking(*each)))
            running.count("booked")
            if running.over:
                return
        if not running.over:
            raise ValueError("more slots are needed to keep the run going")

    return drive(port, [script() for _ in range(connections)], running, seconds, rate)


def read_and_book(
    port: int, requests: Sequence[bytes], bookings: Sequence[Booking], connections: int, seconds: float, every: int
) -> Measured:
    """The same reads over and over, and after so many of them a booking. Reads are counted as such."""
    running, wanted = Running(), iter(bookings)

    def script(first: int) -> Script:
        own = itertools.cycle([*requests[first:], *requests[:first]])
        due = every * (first + 1) // connections + 1  # not all at the same moment
        while not running.over:
            _expect_success(*(yield next(own)))
            running.count("read")
            due -= 1
            if due == 0:
                due = every
                if (booking := next(wanted, None)) is None:
                    raise ValueError("more bookings are needed to keep the run going")
                _expect_booked((yield from _booking(*booking)))
                running.count("booked")

    return drive(port, [script(number % len(requests)) for number in range(connections)], running, seconds, None)


def directory_paths(visit_type: int) -> list[str]:
    """What a conversation reads of the directory, to turn names into ids."""
    return [
        "/api/locations",
        "/api/providers?locationId=1",
        "/api/visit-types",
        f"/api/visit-types/{visit_type}/procedures",
    ]


def search_path(provider: int, day: str) -> str:
    return (
        f"/api/slots?providerId={provider}&locationId={LOCATION}&visitTypeId={VISIT_TYPE}&procedureId={PROCEDURE}"
        f"&from={day}&to={day}&limit=20"
    )


def converse(port: int, token: str, day: str, providers: int, agents: int, seconds: float) -> Measured:
    """The eight steps of a booking, again and again, without thinking time. Times are those of whole conversations."""
    running, numbers, durations = Running(), itertools.count(), array("d")

    def script() -> Script:
        while not running.over:
            number, began = next(numbers), time.perf_counter()
            asked = 1 + number % PATIENTS
            born = (date(1980, 1, 1) + timedelta(days=asked)).isoformat()
            person = {"firstName": f"Person{asked}", "lastName": "Bench", "phone": "5550100100", "dob": born}
            status, body = yield request("POST", "/api/patients/match", token, person)
            _expect_success(status, body)
            patient = json.loads(body)["items"][0]["id"]
            for path in directory_paths(VISIT_TYPE):
                _expect_success(*(yield request("GET", path, token)))
            status, body = yield request("GET", search_path(1 + number % providers, day), token)
            _expect_success(status, body)
            slot = json.loads(body)["items"][0]["id"]
            _expect_success(*(yield request("GET", f"/api/slots/{slot}", token)))
            _expect_booked((yield from _booking(token, slot, patient)))
            running.count("ended")
            durations.append(time.perf_counter() - began)

    measured = drive(port, [script() for _ in range(agents)], running, seconds, None)
    ordered = sorted(durations) or [0.0]
    measured.p50, measured.p99 = ordered[len(ordered) // 2], ordered[min(len(ordered) - 1, len(ordered) * 99 // 100)]
    return measured


def fight(port: int, token: str, batches: Sequence[Sequence[str]], patients: Sequence[str], seconds: float) -> Measured:
    """One connection per patient; all try for every slot of a batch, each beginning at another, then for the next."""
    running = Running()

    def script(number: int, patient: str) -> Script:
        for batch in batches:
            first = number % len(batch)
            for slot in (*batch[first:], *batch[:first]):
                running.count((yield from _booking(token, slot, patient)))
            if running.over:
                return
        if not running.over:
            raise ValueError("more slots are needed to keep the run going")

    return drive(port, [script(number, patient) for number, patient in enumerate(patients)], running, seconds, None)


def _expect_success(status: int, body: bytes) -> None:
    if status != 200:
        raise ValueError(f"status {status}: {body[:300]!r}")


def _expect_booked(outcome: str) -> None:
    if outcome != "booked":
        raise ValueError(f"a booking of a free slot ended as {outcome}")


def _booking(token: str, slot: str, patient: str) -> Generator[bytes, Answer, str]:
    """In two phases, or in one if the token is an integration's."""
    wanted = {"patientId": patient, "slotId": slot}
    status, body = yield request("POST", "/api/appointments", token, wanted)
    if status == 201:
        return "booked"
    answer = json.loads(body)
    if answer.get("code") == "confirmation_required":
        confirmed = {**wanted, "confirmationToken": answer["confirmationToken"]}
        status, body = yield request("POST", "/api/appointments", token, confirmed)
        if status == 201:
            return "booked"
        answer = json.loads(body)
        if answer.get("code") == "slot_unavailable":
            return "refused at the confirmation"
    if answer.get("code") == "slot_unavailable":
        return "refused"
    return f"{status} {answer.get('code')} {answer.get('detail')}"
