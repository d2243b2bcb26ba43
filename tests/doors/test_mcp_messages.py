"""Whatever arrives is a message or is refused in the protocol's own words: nothing else ever comes out."""

from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.doors.mcp.messages import META, VERSIONS, Rejection, read_message
from frontdesk.doors.mcp.methods import result_of
from frontdesk.doors.mcp.tool_calls import _cache_key, _simulated, tool_of
from tests.doors.mcp_speech import assert_no_python
from tests.support.properties import examples

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
VERSION = st.sampled_from((*VERSIONS, "2024-11-05", "v9")) | VALUES
METHOD = st.sampled_from(("initialize", "ping", "tools/list", "tools/call", "server/discover")) | VALUES
PARAMS = st.fixed_dictionaries(
    {},
    optional={
        "name": st.sampled_from(("get_slot", "book_appointment")) | VALUES,
        "arguments": VALUES,
        "cursor": VALUES,
        "protocolVersion": VERSION,
        "_meta": st.dictionaries(
            st.sampled_from((f"{META}protocolVersion", f"{META}clientCapabilities", f"{META}clientInfo")),
            VERSION | st.just({}),
        )
        | VALUES,
    },
)
DOCUMENTS = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.just("2.0") | VALUES,
        "id": st.integers(0, 9) | VALUES,
        "method": METHOD,
        "params": PARAMS | VALUES,
        "result": VALUES,
    },
)
HEADERS = st.dictionaries(
    st.sampled_from(("mcp-protocol-version", "mcp-method", "mcp-name")),
    st.sampled_from((*VERSIONS, "tools/call", "get_slot", "=?base64?Z2V0X3Nsb3Q=?=")) | st.text(max_size=12),
)


def refusal(body: bytes, headers: dict[str, str]) -> Rejection | None:
    """Takes a message as far as the door takes it before the engine is asked."""
    try:
        sent = {name.encode(): value.encode("latin-1", "replace") for name, value in headers.items()}
        message = read_message(body, sent, list(sent.items()))
        operation = tool_of(message)
        if operation is not None:
            _simulated(message, sent)
            _cache_key(operation, message.params.get("arguments") or {})
        elif message.id is not None:
            orjson.dumps(result_of(message, None, "https://desk.example"))
    except Rejection as rejection:
        return rejection
    return None


def assert_taken_or_refused(body: bytes, headers: dict[str, str]) -> None:
    refused = refusal(body, headers)
    if refused is not None:
        assert_no_python(refused.message)
        assert refused.code < -32000
        assert refused.status in (400, 404)


@examples()
@given(st.binary(max_size=200), HEADERS)
def test_any_bytes_are_taken_or_refused(body: bytes, headers: dict[str, str]) -> None:
    assert_taken_or_refused(body, headers)


@examples()
@given(DOCUMENTS | VALUES, HEADERS)
def test_any_document_is_taken_or_refused(document: Any, headers: dict[str, str]) -> None:
    assert_taken_or_refused(orjson.dumps(document), headers)
