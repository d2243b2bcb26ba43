"""The functions of the native calendar read a change's values by the names that the change has in Python."""

import inspect
import re
from dataclasses import fields, is_dataclass
from importlib.resources import files

from frontdesk.store.rows import camel
from frontdesk.systems import changes

ADDED = {
    *("nameKey", "phoneDigits", "namesakes"),  # to the details of a patient
    "unchangedSince",  # by callers who change only what they have seen
}
READ = re.compile(r"\bc ->>? '(\w+)'")


def test_every_value_that_is_read_of_a_change_is_one_that_it_has() -> None:
    sent = {
        camel(field.name)
        for _, kind in inspect.getmembers(changes, inspect.isclass)
        if is_dataclass(kind)
        for field in fields(kind)
    }
    functions = files("frontdesk.store") / "functions"
    read = {
        (path.name, name) for path in functions.iterdir() if path.is_file() for name in READ.findall(path.read_text())
    }
    assert len(read) > 30
    assert {(path, name) for path, name in read if name not in sent | ADDED} == set()
