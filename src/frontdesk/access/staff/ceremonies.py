"""WebAuthn ceremonies: options for the browser, and verification of what it answers.

Import it only when a passkey is used, because the library is slow to import.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import webauthn
from cbor2 import CBORDecodeError
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from webauthn.helpers import base64url_to_bytes, options_to_json
from webauthn.helpers.exceptions import WebAuthnException
from webauthn.helpers.structs import (
    AuthenticatorSelectionCriteria,
    PublicKeyCredentialDescriptor,
    ResidentKeyRequirement,
    UserVerificationRequirement,
)

from frontdesk.access.staff.relying_party import RelyingParty

_TIMEOUT_MILLISECONDS = 300_000
_VERIFIED = UserVerificationRequirement.REQUIRED
# What the library raises for an answer that it cannot read.
_UNREADABLE = (
    WebAuthnException,
    CBORDecodeError,
    InvalidSignature,
    UnsupportedAlgorithm,
    ValueError,
    KeyError,
    IndexError,
    TypeError,
    AttributeError,
    RecursionError,
)


class PasskeyRefused(Exception):
    """The browser's answer does not prove who signs in."""


@dataclass(frozen=True, slots=True)
class VerifiedPasskey:
    credential_id: bytes
    public_key: bytes
    sign_count: int


class Claim(NamedTuple):
    """What an answer says about itself, not verified yet."""

    credential_id: bytes
    user_handle: bytes


def registration_options(
    party: RelyingParty, challenge: bytes, staff_id: str, label: str, name: str, known: Sequence[bytes]
) -> str:
    """Builds the options for registering a discoverable passkey that verifies its user.

    An authenticator that already holds one of the `known` passkeys refuses.
    """
    return options_to_json(
        webauthn.generate_registration_options(
            rp_id=party.id,
            rp_name="frontdesk",
            user_id=staff_id.encode(),
            user_name=label,
            user_display_name=name,
            challenge=challenge,
            timeout=_TIMEOUT_MILLISECONDS,
            authenticator_selection=AuthenticatorSelectionCriteria(
                resident_key=ResidentKeyRequirement.REQUIRED, user_verification=_VERIFIED
            ),
            exclude_credentials=[PublicKeyCredentialDescriptor(id=each) for each in known],
        )
    )


def verified_registration(party: RelyingParty, challenge: bytes, answer: str) -> VerifiedPasskey:
    try:
        made = webauthn.verify_registration_response(
            credential=answer,
            expected_challenge=challenge,
            expected_rp_id=party.id,
            expected_origin=party.origin,
            require_user_verification=True,
        )
    except _UNREADABLE as error:
        raise PasskeyRefused from error
    return VerifiedPasskey(made.credential_id, made.credential_public_key, made.sign_count)


def sign_in_options(party: RelyingParty, challenge: bytes) -> str:
    """Names no credential: the person chooses one that the authenticator holds."""
    return options_to_json(
        webauthn.generate_authentication_options(
            rp_id=party.id, challenge=challenge, timeout=_TIMEOUT_MILLISECONDS, user_verification=_VERIFIED
        )
    )


def claimed(answer: str) -> Claim:
    try:
        document = json.loads(answer)
        return Claim(
            base64url_to_bytes(document["rawId"]),
            base64url_to_bytes(document["response"]["userHandle"]),
        )
    except _UNREADABLE as error:
        raise PasskeyRefused from error


def verified_sign_in(party: RelyingParty, challenge: bytes, answer: str, public_key: bytes, sign_count: int) -> int:
    """The new signature count. One that did not grow means a copied authenticator, and is refused."""
    try:
        return webauthn.verify_authentication_response(
            credential=answer,
            expected_challenge=challenge,
            expected_rp_id=party.id,
            expected_origin=party.origin,
            credential_public_key=public_key,
            credential_current_sign_count=sign_count,
            require_user_verification=True,
        ).new_sign_count
    except _UNREADABLE as error:
        raise PasskeyRefused from error
