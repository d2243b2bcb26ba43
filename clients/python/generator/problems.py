"""Generates one exception per error code."""

from frontdesk.domain.errors import CATALOGUE
from generator.writing import docstring, head

_DOCUMENTATION = "An exception for every code of the service's catalogue of errors."
_IMPORTS = "from frontdesk_client.errors import FrontdeskError\n"


def problem_names() -> list[str]:
    return [_class_name(code) for code in CATALOGUE]


def problems() -> str:
    classes = [
        f"class {_class_name(kind.code)}(FrontdeskError):\n"
        f"{docstring(4, kind.meaning, f'Send again? {kind.retry}')}\n\n"
        f'    code = "{kind.code}"\n'
        for kind in CATALOGUE.values()
    ]
    names = ", ".join(problem_names())
    table = f"BY_CODE: dict[str, type[FrontdeskError]] = {{kind.code: kind for kind in ({names})}}\n"
    return "\n\n".join([head(_DOCUMENTATION, _IMPORTS), *classes, table])


def _class_name(code: str) -> str:
    return "".join(word.title() for word in code.split("_"))
