"""PostgreSQL: the pool and its failures, migrations, the embedded server, and the statements on our own tables."""
