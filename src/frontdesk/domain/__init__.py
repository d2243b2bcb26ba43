"""Business rules as pure functions: no I/O, no framework, no clock."""
