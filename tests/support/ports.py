"""Ports for servers that have to be told theirs before they listen."""

import socket


def free_port() -> int:
    """Until this process ends, nobody who asks the system for any port gets this one: it stays bound here. A server
    that names it may listen on it all the same, and again after it was killed."""
    holder = socket.socket()
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holder.bind(("127.0.0.1", 0))
    port: int = holder.getsockname()[1]
    holder.detach()  # closed with the process
    return port
