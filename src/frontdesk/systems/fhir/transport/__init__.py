"""Requests to a FHIR server: connections, authentication, deadlines and the circuit breaker."""
