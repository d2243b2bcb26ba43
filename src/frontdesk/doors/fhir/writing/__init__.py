"""Creates, updates and scheduling operations of the FHIR door, in terms of our operations."""
