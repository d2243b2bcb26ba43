"""Python source, as text."""

import textwrap

_MARK


def _head(documentation: str, imports: str) -> str:
    return f'"""{documentation}"""\n\n{_MARK}\n{imports.strip()}\n'


def _docstring(text: str, indent: int, *more: str) -> str:
    written = "\n\n".join(textwrap.fill(" ".join(each.split()), 116 - indent) for each in (text, *more))
    ending = "\n" if more else ""
    return textwrap.indent(f'"""{written}{ending}"""', " " * indent)


