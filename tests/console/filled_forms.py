"""Forms of a page as a browser would send them, with some fields filled in differently."""

from html.parser import HTMLParser

import httpx

Fields = dict[str, list[str]]


class _Forms(HTMLParser):
    """The POST forms of a page in order: action and fields, without buttons."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[tuple[str, Fields]] = []
        self._inside = False
        self._name = ""
        self._text: str | None = None
        self._options: list[tuple[str, bool]] | None = None
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            self._inside = given.get("method") == "post"
            if self._inside:
                self.found.append((given["action"], {}))
        elif not self._inside:
            return
        elif tag == "input" and given.get("name"):
            if given.get("type") not in ("checkbox", "radio") or "checked" in given:
                self._add(given["name"], given.get("value", ""))
        elif tag == "textarea":
            self._name, self._text = given["name"], ""
        elif tag == "select":
            self._name, self._options = given["name"], []
        elif tag == "option" and self._options is not None:
            self._options.append((given["value"], "selected" in given))

    def handle_data(self, data: str) -> None:
        if self._text is not None:
            self._text += data

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._inside = False
        elif tag == "textarea" and self._text is not None:
            self._add(self._name, self._text.removeprefix("\n"))
            self._text = None
        elif tag == "select" and self._options is not None:
            chosen = [value for value, selected in self._options if selected] or [v for v, _ in self._options[:1]]
            for value in chosen:
                self._add(self._name, value)
            self._options = None

    def _add(self, name: str, value: str) -> None:
        self.found[-1][1].setdefault(name, []).append(value)


def form_of(page: httpx.Response, action: str, *, having: str = "") -> Fields:
    """The fields of the first form that posts there, and that has this field."""
    for target, fields in _Forms(page.text).found:
        if target == action and (not having or having in fields):
            return fields
    raise AssertionError(f"no form posts to {action}")


async def send(
    browser: httpx.AsyncClient, page: httpx.Response, action: str, *, having: str = "", **changed: str | list[str]
) -> httpx.Response:
    """Sends the form with these fields instead; `__` in a name stands for a dot."""
    fields = form_of(page, action, having=having)
    for name, value in changed.items():
        fields[name.replace("__", ".")] = [value] if isinstance(value, str) else value
    return await browser.post(action, data=fields)
