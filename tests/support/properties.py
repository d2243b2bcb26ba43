"""Property tests: few examples each in `make test`, many more in `make property-test`."""

import os
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import settings

_TIMES = int(os.environ.get("PROPERTY_TIMES", "1"))


def examples(number: int = 100) -> Callable[[Any], Any]:
    """Makes a property test of a function that is quick enough for twenty times as many."""

    def mark(test: Any) -> Any:
        return pytest.mark.property(settings(max_examples=number * _TIMES, deadline=None)(test))

    return mark
