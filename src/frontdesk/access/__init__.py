"""Access control: clients and tokens, rate limits, staff sign-in, keys."""
