"""The supervisor: starts the workers, replaces those that end or hang, and stops them all when it is told to stop.

Each worker is a fresh interpreter with a socket pair to the supervisor, which carries "go", "ready", heartbeats and
"database down", and closes when either side ends.
"""

import contextlib
import logging
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from frontdesk.privileges import protect_process
from frontdesk.serving.address import ServingError, free_address, shared_socket
from frontdesk.serving.audit_heads_file import prepare_audit_heads_file
from frontdesk.serving.database_restarter import DatabaseRestarter
from frontdesk.serving.heartbeats import BEAT_SECONDS, Heartbeats
from frontdesk.serving.metrics_folder import MetricsFolder
from frontdesk.settings import Settings

SERVICE = "frontdesk.serving.lifespan:create"
GO, READY, BEAT, DATABASE_DOWN = b"g", b"r", b"b", b"d"
_STOP_SECONDS = 5.0  # for a worker that serves nobody any more
_CLOSE_SECONDS = 15.0  # for background work, the audit trail and the database, after the last call
_RESTART_SECONDS = 3.0  # least time between two starts of a worker, in case it always fails
_POLL_INTERVAL_SECONDS = 0.1
_log = logging.getLogger(__name__)


@dataclass(eq=False)
class _Worker:
    process: subprocess.Popen[bytes]
    control: socket.socket
    started: float = field(default_factory=time.monotonic)

    def go(self) -> None:
        with contextlib.suppress(OSError):  # a worker that has ended is noticed in _supervise
            self.control.sendall(GO)

    def end(self, seconds: float) -> int:
        """Waits so many seconds for the worker to end, then kills it. Returns its exit status."""
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            _log.warning("A worker did not end in time", extra={"worker": self.process.pid})
            self.process.kill()
        self.control.close()
        return self.process.wait()


def serve(settings: Settings, prepare: Callable[[], Callable[[], None]], factory: str = SERVICE) -> None:
    """Serves the application of `factory` (module:function) until it is told to stop.

    Workers import while `prepare` runs and start afterwards; once all are ready, the function that `prepare` returned
    is called. Settings reach the workers through the environment.
    """
    protect_process()
    address = free_address(settings.host, settings.port)
    if settings.tls_certificate is not None:
        from frontdesk.serving.tls import certificate_of  # imported late: plain HTTP needs none of it

        certificate_of(settings)  # an unusable one is refused before anything is started
    command = [sys.executable, "-P", "-m", "frontdesk.serving.worker", address, str(settings.port), factory]
    metrics = MetricsFolder(settings)
    database = DatabaseRestarter(settings)
    workers: list[_Worker] = []
    try:
        workers += [_start(command) for _ in range(settings.workers)]
        on_ready = prepare()
        free_address(settings.host, settings.port)
        # Bound while we serve, so that no other program takes the port while a worker is replaced.
        with _stop_signals() as signals, shared_socket(address, settings.port):
            metrics.clear()
            prepare_audit_heads_file(settings)
            for worker in workers:
                worker.go()
            from frontdesk.logs import configure_logging  # imported late, while the workers start

            configure_logging(settings.log_level)
            _supervise(workers, command, signals, on_ready, metrics, database)
            _finish(workers, signals, settings.drain_seconds + settings.shutdown_seconds + _CLOSE_SECONDS)
    finally:
        _stop(workers)


def _start(command: list[str]) -> _Worker:
    ours, theirs = socket.socketpair()
    with theirs:
        # Ctrl-C in a terminal reaches the workers too: blocked until they handle it.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            process = subprocess.Popen(  # noqa: S603 - ourselves
                [*command, str(theirs.fileno())], stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()]
            )
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return _Worker(process, ours)


@contextlib.contextmanager
def _stop_signals() -> Iterator[socket.socket]:
    """A socket on which the number of each signal arrives, as a byte."""
    signals, sender = socket.socketpair()
    sender.setblocking(False)
    with signals, sender:
        signal.set_wakeup_fd(sender.fileno(), warn_on_full_buffer=False)
        for number in (signal.SIGINT, signal.SIGTERM):  # for good: later signals must not interrupt stopping
            signal.signal(number, lambda *_: None)
        try:
            yield signals
        finally:
            signal.set_wakeup_fd(-1)


def _supervise(
    workers: list[_Worker],
    command: list[str],
    signals: socket.socket,
    on_ready: Callable[[], None],
    metrics: MetricsFolder,
    database: DatabaseRestarter,
) -> None:
    starting: set[_Worker] | None = set(workers)  # None once all have been ready
    due: list[float] = []  # when ended workers are replaced
    heartbeats = Heartbeats()
    while True:
        timeout = max(0.0, min([BEAT_SECONDS, *(moment - time.monotonic() for moment in due)]))
        readable, _, _ = select.select([signals, *(worker.control for worker in workers)], [], [], timeout)
        if signals in readable:
            return
        for worker in [worker for worker in workers if worker.control in readable]:
            message = _receive(worker)
            if message == READY and starting is not None:
                starting.discard(worker)
            if message == DATABASE_DOWN:
                database.restart()
            if message in (READY, BEAT):
                heartbeats.record(worker.process.pid)
            if message:
                continue
            heartbeats.forget(worker.process.pid)
            status = worker.end(_STOP_SECONDS)
            workers.remove(worker)
            metrics.remove_worker(worker.process.pid)
            if select.select([signals], [], [], _POLL_INTERVAL_SECONDS)[0]:
                return  # the signal that ended it was for all of us
            if starting is not None:
                raise ServingError("The service could not be kept running; the lines above say why.")
            _log.error("Unexpected exit of a worker", extra={"worker": worker.process.pid, "status": status})
            due.append(worker.started + _RESTART_SECONDS)
        hung = heartbeats.hung()
        for worker in [worker for worker in workers if worker.process.pid in hung]:
            _log.error("A worker does not respond and is replaced", extra={"worker": worker.process.pid})
            heartbeats.forget(worker.process.pid)
            worker.process.kill()  # its control socket closes
        if starting is not None and not starting:
            starting = None
            on_ready()
        for moment in [moment for moment in due if moment <= time.monotonic()]:
            due.remove(moment)
            try:
                workers.append(_start(command))
            except OSError as error:
                _log.error("A worker could not be replaced: %s", type(error).__name__)
                due.append(time.monotonic() + _RESTART_SECONDS)
            else:
                workers[-1].go()


def _receive(worker: _Worker) -> bytes:
    try:
        return worker.control.recv(1)
    except OSError:
        return b""


def _finish(workers: list[_Worker], signals: socket.socket, seconds: float) -> None:
    """Passes the signals on to the workers, and waits so many seconds for them to finish their calls."""
    deadline = time.monotonic() + seconds
    while workers and (left := deadline - time.monotonic()) > 0:
        readable, _, _ = select.select([signals, *(worker.control for worker in workers)], [], [], left)
        if signals in readable:
            number = signals.recv(1)[0]
            for worker in workers:
                worker.process.send_signal(number)
        for worker in [worker for worker in workers if worker.control in readable and not _receive(worker)]:
            workers.remove(worker)
            worker.end(_STOP_SECONDS)


def _stop(workers: list[_Worker]) -> None:
    for worker in workers:
        worker.process.terminate()
    deadline = time.monotonic() + _STOP_SECONDS
    for worker in workers:
        worker.end(max(0.0, deadline - time.monotonic()))
