"""The ids of receipts, and what both operations say of them."""

from typing import Annotated

from pydantic import Field

PREFIX = "rcp_"  # before the id of the audit record
ReceiptId = Annotated[
    str,
    Field(
        json_schema_extra={"pattern": f"^{PREFIX}[1-9][0-9]{{0,18}}$"},
        description="The receipt's id, from list_receipts.",
    ),
]
_DIGITS = 19  # of the largest bigint
EXAMPLE_ID = f"{PREFIX}1234"


def receipt_id(record_id: int) -> str:
    return f"{PREFIX}{record_id}"


def record_of(receipt: str) -> int | None:
    """The id of the record; None for what is no id of a receipt."""
    number = receipt.removeprefix(PREFIX)
    if not receipt.startswith(PREFIX) or not number.isascii() or not number.isdigit() or number.startswith("0"):
        return None
    return int(number) if len(number) < _DIGITS else None
