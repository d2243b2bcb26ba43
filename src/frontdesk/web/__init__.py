"""What doors and console share of HTTP: requests, bodies, negotiation, responses, the request log, static files."""
