"""An authenticator in software: makes passkeys and answers challenges as a browser would send them."""

import hashlib
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass, field
from typing import Any

import cbor2
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256

PRESENT, VERIFIED, ATTESTED = 0x01, 0x04, 0x40


def encoded(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def decoded(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))


@dataclass
class Authenticator:
    """Holds one passkey. What it says of itself can be made wrong."""

    origin: str
    rp_id: str = ""
    credential_id: bytes = b"0123456789abcdef"
    user_handle: bytes = b""
    count: int = 0
    flags: int = PRESENT | VERIFIED
    key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))

    def create(self, options: dict[str, Any]) -> str:
        self.rp_id, self.user_handle = options["rp"]["id"], decoded(options["user"]["id"])
        numbers = self.key.public_key().public_numbers()
        public = {1: 2, 3: -7, -1: 1, -2: numbers.x.to_bytes(32, "big"), -3: numbers.y.to_bytes(32, "big")}
        size = len(self.credential_id).to_bytes(2, "big")
        attested = bytes(16) + size + self.credential_id + cbor2.dumps(public)
        data = self._data(self.flags | ATTESTED) + attested
        response = {
            "clientDataJSON": encoded(self._client_data("webauthn.create", options)),
            "attestationObject": encoded(cbor2.dumps({"fmt": "none", "attStmt": {}, "authData": data})),
        }
        return self._credential(response)

    def get(self, options: dict[str, Any]) -> str:
        self.count += 1
        client, data = self._client_data("webauthn.get", options), self._data(self.flags)
        signature = self.key.sign(data + hashlib.sha256(client).digest(), ec.ECDSA(SHA256()))
        response = {
            "clientDataJSON": encoded(client),
            "authenticatorData": encoded(data),
            "signature": encoded(signature),
            "userHandle": encoded(self.user_handle),
        }
        return self._credential(response)

    def _client_data(self, kind: str, options: dict[str, Any]) -> bytes:
        return json.dumps({"type": kind, "challenge": options["challenge"], "origin": self.origin}).encode()

    def _data(self, flags: int) -> bytes:
        return hashlib.sha256(self.rp_id.encode()).digest() + bytes([flags]) + self.count.to_bytes(4, "big")

    def _credential(self, response: dict[str, str]) -> str:
        id_ = encoded(self.credential_id)
        return json.dumps({"id": id_, "rawId": id_, "type": "public-key", "response": response})
