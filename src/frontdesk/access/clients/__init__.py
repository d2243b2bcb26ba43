"""Clients: what they may do, their secrets, their tokens, and who is calling."""
