"""Assistants that staff connect: applications, authorization requests, codes, refresh tokens and connections."""
