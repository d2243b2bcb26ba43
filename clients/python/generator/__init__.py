"""Generators for the client, one module per kind of file."""
