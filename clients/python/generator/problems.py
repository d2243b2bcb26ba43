"""Exceptions: one for every code of the catalogue of errors."""

def _problems() -> str:
    classes = [
        f"class {_class_name(kind.code)}(FrontdeskError):\n"
        f"{_docstring(f'{kind.meaning}', 4, f'Send again? {kind.retry}')}\n\n"
        f'    code = "{kind.code}"\n'
        for kind in CATALOGUE.values()
    ]
    names = ", ".join(_class_name(code) for code in CATALOGUE)
    head = _head(
        "An exception for every code of the service's catalogue of errors.",
        "# ruff: noqa: N818 - named after the codes\n\nfrom frontdesk_client.errors import FrontdeskError\n",
    )
    table = f"BY_CODE: dict[str, type[FrontdeskError]] = {{kind.code: kind for kind in ({names})}}\n"
    return "\n\n".join([head, *classes, table])


