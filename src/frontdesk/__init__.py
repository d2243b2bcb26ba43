"""frontdesk: a medical practice's calendar, safe to hand to integrations and AI agents."""

__version__ = "0.1.0"
