"""Serving over HTTP: the server process, its workers, and the limits of the wire."""

from frontdesk.serving.address import ServingError, free_address
from frontdesk.serving.supervisor import serve

__all__ = ["ServingError", "free_address", "serve"]
