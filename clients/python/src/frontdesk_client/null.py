"""NULL, the argument that removes a value. None leaves it as it is."""

from enum import Enum


class Null(Enum):
    NULL = "null"


NULL = Null.NULL
