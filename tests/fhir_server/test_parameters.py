"""Search parameters of FHIR: whatever is sent is read or refused in words, and dates mean what FHIR says."""

import pytest

from frontdesk.domain.errors import Problem
from frontdesk.doors.fhir.parameters import Query, Span, read_query
from frontdesk.doors.fhir.served import SERVED

NAMES = sorted({each.name for kind in SERVED.values() for each in kind.parameters})
FOLLOWED = {kind.name: kind.includes for kind in SERVED.values()}


def read(kind: str, *pairs: tuple[str, str]) -> Query:
    return read_query(kind, SERVED[kind].parameters, FOLLOWED, pairs, "http://test/fhir/R4", strict=False)


def test_any_value_is_read_or_refused() -> None:
    nasty = (
        "", ",", "\\,", "|", "/", "\x00", "\ud800", "9" * 5000, "-1", "0", "sa2026", "2026-13", "0000-01-01",
        "ge9999-12-31", "lt0001-01-01", "2026-02-30", "2026-11-16T25:00Z", "2026-11-16T09:00+99:99",
        "9999-12-31T23:59:59-23:59",
        "0001-01-01T00:00Z", "::", "Slot:", "Slot:schedule:Slot:x", "٢٠٢٦",
    )  # fmt: skip
    for kind in SERVED:
        for name in (*NAMES, "_count", "_include", "_include:iterate", "_summary", "_sort", "_cursor"):
            for modifier in ("", ":not", ":exact", ":Patient", ".name", ":"):
                for value in nasty:
                    try:
                        read(kind, (name + modifier, value))
                    except Problem as problem:
                        assert problem.code == "validation", (kind, name, value)  # noqa: PT017


@pytest.mark.parametrize(
    ("value", "matched"),
    [
        ("2026-11-16", "bc"), ("eq2026-11-16", "bc"), ("ge2026-11-16", "bcd"), ("gt2026-11-16", "d"),
        ("le2026-11-16", "abc"), ("lt2026-11-16", "a"), ("2026-11", "abcd"), ("2026", "abcd"), ("gt2026", ""),
        ("2026-11-16T14:00:00Z", "b"), ("2026-11-16T14:00Z", "b"), ("gt2026-11-16T14:00:00Z", "cd"),
        ("ge2026-11-16T09:00:00-05:00", "bcd"), ("lt2026-11-16T15:00:00.500+01:00", "ab"),
        ("2026-11-15,2026-11-17", "ad"),
    ],
)  # fmt: skip
def test_dates_are_compared_as_fhir_says(value: str, matched: str) -> None:
    """A date without a time is one at the place."""
    starts = {
        "a": "2026-11-15T23:45:00-05:00", "b": "2026-11-16T09:00:00-05:00", "c": "2026-11-16T23:45:00-05:00",
        "d": "2026-11-17T00:00:00-05:00",
    }  # fmt: skip
    query = read("Slot", ("start", value))
    assert "".join(name for name, start in starts.items() if query.matches({"start": start})) == matched
    first, last = query.days("start")
    for name in matched:
        day = starts[name][:10]
        assert first is None or first.isoformat() <= day
        assert last is None or day <= last.isoformat()


def test_the_limits_of_several_dates_are_joined() -> None:
    first, last = read("Slot", ("start", "ge2026-11-16"), ("start", "lt2026-11-20T00:00:00Z")).days("start")
    assert (str(first), str(last)) == ("2026-11-16", "2026-11-20")
    [day] = {*read("Slot", ("start", "2026-11-16")).days("start")}
    assert str(day) == "2026-11-16", "no other day is read"
    assert read("Slot", ("start", "2026-11-16,2026-12-01")).days("start") == (None, None)
    assert isinstance(read("Patient", ("birthdate", "1985-12-10")).alternatives("birthdate")[0][0], Span)


def test_a_search_has_a_limited_number_of_values() -> None:
    with pytest.raises(Problem, match="validation"):
        read("Slot", ("status", ",".join("x" * 201)))
