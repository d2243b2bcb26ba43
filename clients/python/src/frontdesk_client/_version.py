"""The version of this package: of its releases and of its User-Agent."""

__version__ = "0.1.0"
