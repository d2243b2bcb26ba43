"""The version of this package, also in the User-Agent."""

__version__ = "0.1.0"
