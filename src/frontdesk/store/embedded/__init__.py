"""The bundled PostgreSQL server: its account, its guard process, its roles and its backups."""
