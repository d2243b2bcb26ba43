"""How many examples a property test draws: few in `make test`, many more in `make property-test`."""

import os

from hypothesis import settings

_TIMES = int(os.environ.get("PROPERTY_TIMES", "1"))


def examples(number: int) -> settings:
    return settings(max_examples=number * _TIMES, deadline=None)
