"""Scheduling systems behind one port: the native calendar on PostgreSQL, or a FHIR server."""
