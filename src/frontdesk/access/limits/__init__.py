"""Rate limits and quotas, the cap on failed token requests, and usage counts."""
