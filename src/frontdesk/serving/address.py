"""The address to listen on. A port in use by another server is refused, although SO_REUSEPORT would allow it."""

import errno
import socket
import time

_PORT_WAIT_SECONDS = 1.0  # workers of a killed supervisor need a moment to end
_POLL_SECONDS = 0.01


class ServingError(Exception):
    """Why the service cannot be served, in one sentence."""


def free_address(host: str, port: int) -> str:
    """The numeric address to listen on, once it is free."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except OSError:
        raise ServingError(f"{host} is not an address of this machine: choose another with --host.") from None
    deadline = time.monotonic() + _PORT_WAIT_SECONDS
    while True:
        with socket.socket(family, kind) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(address)
                return str(address[0])
            except OSError as error:
                if error.errno != errno.EADDRINUSE or time.monotonic() > deadline:
                    raise ServingError(_bind_error(error, host, port)) from None
        time.sleep(_POLL_SECONDS)


def _bind_error(error: OSError, host: str, port: int) -> str:
    other = "choose another with --port or FRONTDESK_PORT"
    if error.errno == errno.EADDRINUSE:
        return f"Port {port} is in use by another program: {other}."
    if error.errno == errno.EACCES:
        return f"Port {port} needs more rights than this account has: {other}."
    return f"{host} is not an address of this machine: choose another with --host."


def shared_socket(address: str, port: int) -> socket.socket:
    """A bound socket. Each worker has its own, and the kernel distributes connections among them."""
    bound = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        bound.bind((address, port))
    except OSError as error:
        bound.close()
        raise ServingError(_bind_error(error, address, port)) from None
    return bound
