"""Webhooks: endpoints are told about a practice's events, at least once and in order per appointment."""
