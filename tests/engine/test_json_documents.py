"""JSON from callers: what is repeated is found at any depth, and nesting is limited."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.engine.json_documents import MAX_DEPTH, UnreadableJson, read_json
from tests.support.properties import examples

NAMES = st.text(st.sampled_from('ab:"\\{,'), max_size=2)
VALUES: st.SearchStrategy[str] = st.recursive(
    st.sampled_from(["1", "-2.5e3", "null", '":"', '"{\\"a\\":1,\\"a\\":2}"', "9" * 300, '"\\u003a"']),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda items: "[" + ", ".join(items) + "]")
        | st.lists(st.tuples(NAMES.map(json.dumps), inner), max_size=4).map(
            lambda pairs: "{" + ",".join(f"{name} :\n{value}" for name, value in pairs) + "}"
        )
    ),
    max_leaves=12,
)


@examples()
@given(VALUES)
def test_every_repeated_property_is_found_and_nothing_else(text: str) -> None:
    expected: set[str] = set()

    def note(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        names = [name for name, _ in pairs]
        expected.update(name for name in names if names.count(name) > 1)
        return dict(pairs)

    document = json.loads(text, object_pairs_hook=note, parse_int=float)
    found, repeated = read_json(text.encode())
    assert set(repeated) == expected
    assert found == document


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}"), ('[{"a":', "}]")])
def test_nesting_is_limited(opening: str, closing: str) -> None:
    levels = MAX_DEPTH // len(opening.replace('"a":', ""))
    read_json((opening * (levels - 1) + "[]" + closing * (levels - 1)).encode())
    for depth in (levels + 1, 300, 500, 20_000):
        with pytest.raises(UnreadableJson):
            read_json((opening * depth + "[]" + closing * depth).encode())
