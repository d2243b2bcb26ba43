"""Pages of the console as a browser loads them: once, again and again, and again when the day has changed."""

import http.client
import re
import time

_SECONDS = 30


def known_columns(html: str) -> dict[str, str]:
    """The header with which an open page says which columns of the calendar it has."""
    return {"X-Calendar-Columns": ",".join(re.findall(r'data-column="(\w+)"', html))}


def open_page(port: int, cookie: str, path: str, times: int) -> float:
    """Seconds per page, on one connection."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_SECONDS)
    began = time.perf_counter()
    for _ in range(times):
        connection.request("GET", path, headers={"Cookie": cookie})
        answer = connection.getresponse()
        answer.read()
        _expect(answer, http.client.OK)
    seconds = (time.perf_counter() - began) / times
    connection.close()
    return seconds


def follow(port: int, cookie: str, path: str, seconds: float) -> int:
    """A calendar page that is left open: whenever the console's stream says that the day has changed, it asks for the
    columns that it does not have. Returns how often it did."""
    deadline, headers, loaded = time.monotonic() + seconds, {"Cookie": cookie, "X-Calendar-Parts": "yes"}, 0
    stream = http.client.HTTPConnection("127.0.0.1", port, timeout=_SECONDS)
    page = http.client.HTTPConnection("127.0.0.1", port, timeout=_SECONDS)
    stream.request("GET", "/console/live", headers=headers)
    events = stream.getresponse()
    _expect(events, http.client.OK)
    while time.monotonic() < deadline:
        if events.readline().startswith(b"event: calendar"):
            page.request("GET", path, headers=headers)
            answer = page.getresponse()
            html = answer.read().decode()
            if answer.status != http.client.NOT_MODIFIED:
                _expect(answer, http.client.OK)
            headers["If-None-Match"] = answer.headers["ETag"]
            if "data-cal" in html:  # not only what is below the grid
                headers |= known_columns(html)
            loaded += 1
    stream.close()
    page.close()
    return loaded


def _expect(answer: http.client.HTTPResponse, status: int) -> None:
    if answer.status != status:
        raise ValueError(f"the console answered {answer.status}")
