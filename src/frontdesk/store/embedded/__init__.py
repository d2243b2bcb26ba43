"""The bundled PostgreSQL server: its account, its guard process and its backups."""
