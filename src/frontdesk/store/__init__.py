"""PostgreSQL: the pool and its failures, the schema, the embedded server, practices and their directories."""
