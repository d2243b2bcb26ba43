"""What the tests share with those of the FHIR door."""

from tests.fhir_server.conftest import server

__all__ = ["server"]
