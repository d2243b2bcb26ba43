"""The practice's own scheduling system behind one port: our calendar on PostgreSQL, or an existing one over FHIR."""
