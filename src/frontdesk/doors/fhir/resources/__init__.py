"""The resource types that the FHIR door serves, one module each."""
