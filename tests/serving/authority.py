"""A certificate authority for tests."""

import ssl
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)

_DAY = timedelta(days=1)
_CERTIFICATE_SIGNING = x509.KeyUsage(
    digital_signature=False,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=True,
    crl_sign=True,
    encipher_only=False,
    decipher_only=False,
)


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)])


@dataclass
class Authority:
    key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))
    certificate: x509.Certificate = field(init=False)

    def __post_init__(self) -> None:
        now = datetime.now(UTC)
        self.certificate = (
            x509.CertificateBuilder(_name("Tests"), _name("Tests"), self.key.public_key(), x509.random_serial_number())
            .not_valid_before(now - _DAY)
            .not_valid_after(now + 365 * _DAY)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(_CERTIFICATE_SIGNING, critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(self.key.public_key()), critical=False)
            .sign(self.key, SHA256())
        )

    def trusting(self) -> ssl.SSLContext:
        """What a client of this authority uses."""
        context = ssl.create_default_context(cadata=self.certificate.public_bytes(Encoding.PEM).decode())
        context.verify_flags |= ssl.VERIFY_X509_STRICT  # the default from Python 3.13 on
        return context

    def issue(
        self,
        folder: Path,
        *,
        names: tuple[str, ...] = ("127.0.0.1", "localhost", "desk.example.org"),
        ends_in: timedelta = 90 * _DAY,
        password: bytes | None = None,
    ) -> tuple[Path, Path, int]:
        """Writes a certificate and its key into the folder; the last item is the serial number."""
        key = ec.generate_private_key(ec.SECP256R1())
        serial = x509.random_serial_number()
        now = datetime.now(UTC)
        certificate = (
            x509.CertificateBuilder(self.certificate.subject, _name("desk"), key.public_key(), serial)
            .not_valid_before(now - 30 * _DAY)
            .not_valid_after(now + ends_in)
            .add_extension(x509.SubjectAlternativeName([_general(name) for name in names]), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()), critical=False)
            .sign(self.key, SHA256())
        )
        protection = NoEncryption() if password is None else BestAvailableEncryption(password)
        for name, data in (
            ("tls.crt", certificate.public_bytes(Encoding.PEM)),
            ("tls.key", key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, protection)),
        ):
            written = folder / f"{name}.new"
            written.touch(mode=0o600)
            written.write_bytes(data)
            written.rename(folder / name)
        return folder / "tls.crt", folder / "tls.key", serial


def _general(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)
