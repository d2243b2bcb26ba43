"""The types of request fields, with their rules and schemas.

A value that cannot be parsed breaks the rule Binding; other values break the rule that is named. Messages never contain
the value.
"""

import re
from collections.abc import Callable
from datetime import date
from typing import Annotated, ClassVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo, WithJsonSchema
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from frontdesk.domain.cursors import tag_and_payload
from frontdesk.domain.errors import BINDING
from frontdesk.domain.ids import APPOINTMENT_FORM, PATIENT_FORM, PATIENT_ID
from frontdesk.domain.names import digits, has_letter
from frontdesk.domain.text import character_error
from frontdesk.texts import N_

INT32_MAX = 2**31 - 1
DEFAULT_LIMIT, MAX_LIMIT = 50, 200
NAME_LENGTH, PHONE_LENGTH, REASON_LENGTH, EMAIL_LENGTH = 100, 32, 500, 254
MAX_PHONE_DIGITS = 15
FOREIGN_CURSOR = "%(field)s must be the nextCursor of a page of this same query"
NULL_REMOVES = "x-null-removes"  # marks the schema of a field where null removes what is stored; elsewhere it is absent

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}\Z", re.ASCII)
_EMAIL = re.compile(r"[^@\s]+@[^@\s.]+(?:\.[^@\s.]+)*\Z")


class Input(BaseModel):
    """The path, query and body fields of an operation in one flat record."""

    model_config = ConfigDict(strict=True, extra="forbid", alias_generator=to_camel, frozen=True, defer_build=True)

    needs_today: ClassVar[bool] = False
    """Whether a rule compares with today's date at the practice."""


class WriteInput(Input):
    confirmation_token: Annotated[
        str | None,
        Field(description="From the challenge of the identical first call. Leave out to be challenged."),
    ] = None

    def given_fields(self) -> dict[str, object]:
        """What was given, by published names, without the confirmation token."""
        return self.model_dump(mode="json", by_alias=True, exclude={"confirmation_token"}, exclude_none=True)


def broken(rule: str, template: str, **values: object) -> PydanticCustomError:
    """The error for a broken rule, as pydantic collects it. The template has %(field)s where it names the field."""
    return PydanticCustomError(rule, template, values)


def _cursor(text: str) -> str:
    """Whether it belongs to the query can only be checked when all of the query has been read."""
    if tag_and_payload(text) is None:
        raise broken("cursor", FOREIGN_CURSOR)
    return text


def require_order(last: date | None, info: ValidationInfo) -> date | None:
    """Checks that the end of a window is not before its beginning, the field `first`."""
    first = info.data.get("first")
    if first is not None and last is not None and first > last:
        raise broken("order", N_("%(field)s must not be before from"))
    return last


def int32(value: int) -> int:
    if not -INT32_MAX - 1 <= value <= INT32_MAX:
        raise broken(BINDING, "%(field)s must be a 32-bit integer")
    return value


def _above_zero(value: int) -> int:
    if value <= 0:
        raise broken("greaterThanZero", "%(field)s must be greater than 0")
    return value


def between(minimum: int, maximum: int) -> Callable[[int], int]:
    def check(value: int) -> int:
        if not minimum <= value <= maximum:
            template = N_("%(field)s must be from %(minimum)s to %(maximum)s")
            raise broken("range", template, minimum=minimum, maximum=maximum)
        return value

    return check


def _read_date(value: object) -> date:
    if isinstance(value, str) and _DATE.match(value):
        try:
            return date.fromisoformat(value)
        except ValueError:
            pass
    raise broken(BINDING, N_("%(field)s must be a date in the form yyyy-MM-dd, without a time"))


def _not_future(value: date, info: ValidationInfo) -> date:
    assert info.context is not None
    if value > info.context["today"]:
        raise broken("notFuture", N_("%(field)s must not be in the future"))
    return value


def _visible(value: str) -> str:
    error = character_error(value)
    if error is not None:
        raise broken("characters", error)
    return value


def _not_blank(value: str) -> str:
    if not value.strip():
        raise broken("notBlank", N_("%(field)s must not be blank"))
    return value


def _with_letter(value: str) -> str:
    if not has_letter(value):
        raise broken("characters", N_("%(field)s must contain a letter"))
    return value


def blank_as_none(value: object) -> object:
    return None if isinstance(value, str) and not value.strip() else value


def _at_most(length: int) -> Callable[[str], str]:
    """Comes before the rules that look at every character."""

    def check(value: str) -> str:
        if len(value) > length:
            raise broken("maxLength", N_("%(field)s must be at most %(maximum)s characters"), maximum=length)
        return value

    return check


def _digits_from(minimum: int) -> Callable[[str], str]:
    def check(value: str) -> str:
        count = len(digits(value))
        if count < minimum:
            raise broken("minDigits", N_("%(field)s must contain at least %(minimum)s digits"), minimum=minimum)
        if count > MAX_PHONE_DIGITS:
            raise broken("maxLength", N_("%(field)s must contain at most %(maximum)s digits"), maximum=MAX_PHONE_DIGITS)
        return value

    return check


def _email(value: str) -> str:
    if not _EMAIL.match(value):
        raise broken(BINDING, N_("%(field)s must be an e-mail address"))
    return value


def _patient_reference(value: object) -> str | int:
    """A `pat_` id, or the practice's own patient number, in a query as text."""
    if isinstance(value, str):
        if PATIENT_ID.match(value):
            return value
        if re.fullmatch(r"[0-9]{1,10}", value, re.ASCII):
            value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= INT32_MAX:
        return value
    raise broken(BINDING, "%(field)s must be a pat_ id or a patient number")


_CONTROL = r"\x00-\x1f\x7f-\x9f"
_PRINTABLE = rf"^[^{_CONTROL}]*$"
_NOT_BLANK = rf"^[^{_CONTROL}]*[^\s{_CONTROL}][^{_CONTROL}]*$"

_PATIENT_NUMBER = "[01]?[0-9]{1,9}|20[0-9]{8}"  # all that an import or a new patient gets, and nothing beyond int32


def integer_schema(maximum: int, description: str) -> WithJsonSchema:
    """The schema of an integer from 1 to `maximum`."""
    limits = {"minimum": 1, "maximum": maximum}
    return WithJsonSchema({"type": "integer", "format": "int32", **limits, "description": description})


def _text_schema(**schema: object) -> WithJsonSchema:
    """Holds the description, which a Field would lose if the field is optional."""
    return WithJsonSchema({"type": "string", **schema})


def _phone_schema(minimum: int, description: str) -> WithJsonSchema:
    others = f"[^0-9{_CONTROL}]*"
    pattern = f"^{others}([0-9]{others}){{{minimum},{MAX_PHONE_DIGITS}}}$"
    return _text_schema(minLength=minimum, maxLength=PHONE_LENGTH, pattern=pattern, description=description)


Id = Annotated[
    int,
    AfterValidator(int32),
    AfterValidator(_above_zero),
    integer_schema(INT32_MAX, "An id from the list operations."),
]


Limit = Annotated[
    int,
    AfterValidator(int32),
    AfterValidator(between(1, MAX_LIMIT)),
    integer_schema(MAX_LIMIT, "The most items to return."),
]


Date = Annotated[date, BeforeValidator(_read_date), WithJsonSchema({"type": "string", "format": "date"})]
BirthDate = Annotated[
    Date, AfterValidator(_not_future), _text_schema(format="date", description="Date of birth, yyyy-MM-dd.")
]
Name = Annotated[
    str,
    AfterValidator(_at_most(NAME_LENGTH)),
    AfterValidator(_visible),
    AfterValidator(_not_blank),
    AfterValidator(_with_letter),
    _text_schema(minLength=1, maxLength=NAME_LENGTH, pattern=_NOT_BLANK, description="The legal name."),
]
NameFilter = Annotated[
    str,
    AfterValidator(_at_most(NAME_LENGTH)),
    AfterValidator(_visible),
    _text_schema(
        maxLength=NAME_LENGTH,
        pattern=_PRINTABLE,
        description="Words of the name or of an alias, or their beginnings. Titles, case, accents and punctuation are "
        "ignored.",
    ),
]


PhonePart = Annotated[
    str,
    AfterValidator(_at_most(PHONE_LENGTH)),
    AfterValidator(_visible),
    AfterValidator(_digits_from(4)),
    _phone_schema(4, "The phone number, or at least four digits of it, punctuation as people write it."),
]
Phone = Annotated[
    str,
    AfterValidator(_at_most(PHONE_LENGTH)),
    AfterValidator(_visible),
    AfterValidator(_digits_from(7)),
    _phone_schema(7, "A whole phone number, at least seven digits, punctuation as people write it."),
]
Email = Annotated[
    str,
    AfterValidator(_at_most(EMAIL_LENGTH)),
    AfterValidator(_visible),
    AfterValidator(_email),
    _text_schema(format="email", maxLength=EMAIL_LENGTH, description="An e-mail address."),
]
RemovableEmail = Annotated[
    Email | None,
    _text_schema(
        format="email",
        maxLength=EMAIL_LENGTH,
        description="An e-mail address; null removes it.",
        **{NULL_REMOVES: True},
    ),
]
Reason = Annotated[
    str,
    AfterValidator(_at_most(REASON_LENGTH)),
    AfterValidator(_visible),
    _text_schema(maxLength=REASON_LENGTH, pattern=_PRINTABLE),
]
PatientReference = Annotated[
    str | int,
    BeforeValidator(_patient_reference),
    WithJsonSchema({"type": "string", "pattern": f"^({PATIENT_FORM}|{_PATIENT_NUMBER})$"}),
]
# Ids of people, appointments and slots are looked up, not parsed: one that nothing has is simply not found.
PatientId = Annotated[str, _text_schema(description="The patient's id, from match_patient or create_patient.")]
AppointmentId = Annotated[
    str,
    _text_schema(
        pattern=f"^{APPOINTMENT_FORM}$",
        description="The appointment's id, from list_appointments or book_appointment.",
    ),
]
SlotId = Annotated[
    str, _text_schema(description="The slot's id, from search_slots or find_first_available, unchanged.")
]
Cursor = Annotated[
    str,
    AfterValidator(_cursor),
    _text_schema(description="nextCursor of the previous page, with the same filters."),
]
