"""Serving over HTTP: the supervisor, its workers, and their connections."""

from frontdesk.serving.address import ServingError, free_address
from frontdesk.serving.supervisor import serve

__all__ = ["ServingError", "free_address", "serve"]
