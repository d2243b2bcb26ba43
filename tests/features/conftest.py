"""What the tests of features share with those of the console."""

from tests.console.conftest import admin, staff

__all__ = ["admin", "staff"]
