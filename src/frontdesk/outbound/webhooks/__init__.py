"""Webhooks: deliver a practice's events to endpoints, at least once and in order per appointment."""
