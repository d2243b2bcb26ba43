"""FHIR R4 resources translated to domain records and back. Pure."""
