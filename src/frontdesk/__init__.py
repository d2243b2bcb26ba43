"""A scheduling API for medical practices, safe to give to integrations and AI agents."""

__version__ = "0.1.0"
