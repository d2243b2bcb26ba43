"""The address that is listened on. Refuses to share a port with another server, which the kernel alone would allow."""

import errno
import socket
import time

_PORT_PATIENCE_SECONDS = 1.0  # the workers of a server that was killed need a moment to notice
_POLL_SECONDS = 0.01


class ServingError(Exception):
    """One sentence about why the service cannot be reached where it was asked to be."""


def free_address(host: str, port: int) -> str:
    """The numeric address to listen on, once nobody else listens there."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except OSError:
        raise ServingError(f"{host} is no address of this machine: choose another with --host.") from None
    deadline = time.monotonic() + _PORT_PATIENCE_SECONDS
    while True:
        with socket.socket(family, kind) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(address)
                return str(address[0])
            except OSError as error:
                if error.errno != errno.EADDRINUSE or time.monotonic() > deadline:
                    raise ServingError(_why_not(error, host, port)) from None
        time.sleep(_POLL_SECONDS)


def _why_not(error: OSError, host: str, port: int) -> str:
    other = "choose another with --port or FRONTDESK_PORT"
    if error.errno == errno.EADDRINUSE:
        return f"Port {port} is in use by another program: {other}."
    if error.errno == errno.EACCES:
        return f"Port {port} needs more rights than this account has: {other}."
    return f"{host} is no address of this machine: choose another with --host."


def shared_socket(address: str, port: int) -> socket.socket:
    """Bound, and not listening yet. Every worker has one of its own, and the kernel spreads connections among them."""
    bound = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        bound.bind((address, port))
    except OSError as error:
        bound.close()
        raise ServingError(_why_not(error, address, port)) from None
    return bound
