"""Where webhooks go: public addresses only, whatever a name or a redirect says, unless the operator allows more."""

import asyncio
import socket
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from frontdesk.host_lookups import HostLookups
from frontdesk.outbound.targets import TargetError, addresses_of, parse_target
from frontdesk.outbound.webhooks.sender import Sender
from frontdesk.settings import SettingsError, load_settings
from tests.support.listening import listening
from tests.webhooks.desk import Desk
from tests.webhooks.receiver import Receiver

PRIVATE = [
    "127.0.0.1", "127.8.8.8", "10.0.0.1", "172.16.3.4", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0",
    "224.0.0.251", "239.1.1.1", "255.255.255.255", "192.0.2.1", "198.18.0.1", "::1", "::", "fe80::1", "fe80::1%eth0",
    "fc00::1", "fd12::1", "ff02::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe",
    "2002:7f00:1::", "2002:a00:1::", "2001:db8::1", "::127.0.0.1", "::8.8.8.8", "::ffff:0:127.0.0.1",
    "::ffff:0:8.8.8.8", "64:ff9b:1::7f00:1", "64:ff9b:1::808:808", "fec0::1", "fec0::127.0.0.1",
    "2001:0:4136:e378:8000:63bf:80ff:fffe", "2001:0:7f00:1::", "100::1", "5f00::1", "4000::1",
]  # fmt: skip
PUBLIC = ["93.184.216.34", "8.8.8.8", "2606:4700:4700::1111", "64:ff9b::808:808", "::ffff:8.8.8.8"]


def resolving(monkeypatch: pytest.MonkeyPatch, *answers: list[str]) -> list[Any]:
    """Names resolve to these addresses, the last answer forever; returns who asked."""
    asked: list[Any] = []

    def lookup(host: str, port: int, **_: Any) -> list[Any]:
        asked.append(host)
        addresses = answers[min(len(asked), len(answers)) - 1]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in addresses]

    monkeypatch.setattr(socket, "getaddrinfo", lookup)
    return asked


@pytest.mark.parametrize("address", PRIVATE)
async def test_a_name_that_leads_to_a_private_address_is_refused(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    resolving(monkeypatch, ["8.8.8.8", address])
    target, lookups = parse_target("https://hooks.example.com/", allow_private=False), HostLookups()
    with pytest.raises(TargetError):
        await addresses_of(target, lookups, allow_private=False)
    allowed = await addresses_of(target, lookups, allow_private=True)
    assert allowed == ["8.8.8.8", address]


async def test_public_addresses_are_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    resolving(monkeypatch, PUBLIC)
    target = parse_target("https://hooks.example.com/", allow_private=False)
    assert await addresses_of(target, HostLookups(), allow_private=False) == PUBLIC


async def test_a_name_is_looked_up_once_for_all_its_ports(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, lookups = resolving(monkeypatch, PUBLIC), HostLookups()
    targets = [parse_target(f"https://hooks.example.com:{port}/", allow_private=False) for port in (443, 8443)]
    found = await asyncio.gather(*(addresses_of(target, lookups, allow_private=False) for target in targets))
    assert found == [PUBLIC, PUBLIC]
    assert asked == ["hooks.example.com"]


@pytest.mark.parametrize(
    "url",
    [
        "http://hooks.example.com/", "ftp://hooks.example.com/", "file:///etc/passwd", "https:///x",
        "hooks.example.com", "https://user:password@hooks.example.com/", "https://hooks.example.com/#x",
        "https://hooks.example.com:99999/", "https://[::1", "https://hooks.example.com/a b", "https://hooks.example.com/\n",
        "https://héllo.example/",
        "https://a\\@b.example/", "https://hooks.example.com/" + "x" * 2000, "",
    ],
)  # fmt: skip
def test_an_address_of_another_form_is_refused(url: str) -> None:
    with pytest.raises(TargetError) as caught:
        parse_target(url, allow_private=False)
    assert "password" not in str(caught.value)


def test_the_private_network_is_allowed_by_a_setting_that_is_true_or_false(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "FRONTDESK_WEBHOOK_ALLOW_PRIVATE"
    assert load_settings().webhook_allow_private is False
    for text, allowed in (("true", True), ("false", False)):
        monkeypatch.setenv(name, text)
        assert load_settings().webhook_allow_private is allowed
    monkeypatch.setenv(name, "yes")
    with pytest.raises(SettingsError, match=name):
        load_settings()


async def test_plain_http_is_for_private_networks_that_are_allowed() -> None:
    assert parse_target("http://hooks.internal:8080/a?b=c", allow_private=True).path == "/a?b=c"


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "[::1]", "0177.0.0.1", "2130706433", "127.1", "[::ffff:127.0.0.1]"]
)
async def test_loopback_is_refused_in_every_spelling(host: str) -> None:
    sender = Sender(allow_private=False)
    with pytest.raises(TargetError):
        await sender.check(f"https://{host}/hook")
    sent = await sender.send(f"https://{host}/hook", {}, b"{}")
    assert (sent.status, sent.failure) == (None, "forbidden address")
    await sender.close()


async def test_nothing_is_sent_to_an_endpoint_whose_name_now_leads_to_loopback(
    desk: Desk, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint, _ = await desk.endpoint(f"https://hooks.example.com:{receiver.port}/hook")
    await desk.happen("apt_1")
    asked = resolving(monkeypatch, ["127.0.0.1"])
    await desk.deliver(desk.node(allow_private=False))
    assert asked == ["hooks.example.com"]
    assert receiver.attempts == []
    [attempt] = await desk.rows("SELECT * FROM webhook_attempt WHERE endpoint_id = $1", endpoint)
    assert attempt["failure"] == "forbidden address"


async def test_an_endpoint_of_the_console_stays_public_where_the_operator_allows_private_addresses(
    desk: Desk, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An admin who lets the name lead to loopback later gets no message into the network."""
    resolving(monkeypatch, ["127.0.0.1"])
    of_console = f"https://hooks.example.com:{receiver.port}/console"
    endpoint, _ = await desk.endpoint(of_console, public_only=True)
    plain, _ = await desk.endpoint(receiver.url("/console"), public_only=True)
    await desk.endpoint(receiver.url("/operator"))
    await desk.happen("apt_1")
    await desk.deliver(desk.node(allow_private=True))
    assert [message.path for message in receiver.attempts] == ["/operator"]
    attempts = await desk.rows("SELECT * FROM webhook_attempt WHERE endpoint_id = ANY ($1)", [endpoint, plain])
    assert [attempt["failure"] for attempt in attempts] == ["forbidden address"] * 2


async def test_the_address_that_was_checked_is_the_one_that_is_connected_to(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name that answers differently the second time is not asked a second time."""
    asked = resolving(monkeypatch, ["127.0.0.1"], ["127.0.0.2"])
    sender = Sender(allow_private=True)
    sent = await sender.send(receiver.url(host="rebind.example.com"), {"webhook-id": "evt_1"}, b'{"data": {}}')
    await sender.close()
    assert sent.status == 200
    assert asked == ["rebind.example.com"]
    assert receiver.received[0].headers["host"] == f"rebind.example.com:{receiver.port}"


async def test_a_redirect_is_a_failure_and_is_not_followed(desk: Desk, receiver: Receiver) -> None:
    await desk.endpoint(receiver.url("/moved"))
    receiver.status["/moved"] = 302
    await desk.happen("apt_1")
    await desk.deliver()
    assert [message.path for message in receiver.attempts] == ["/moved"]
    [attempt] = await desk.rows("SELECT * FROM webhook_attempt")
    assert (attempt["status"], attempt["failure"]) == (302, "redirect")


async def test_a_proxy_in_the_environment_is_not_used(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    sender = Sender(allow_private=True)
    sent = await sender.send(receiver.url(), {"webhook-id": "evt_1"}, b'{"data": {}}')
    await sender.close()
    assert sent.status == 200


async def test_a_dead_port_an_unknown_name_and_a_second_address_are_told_apart(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    sender = Sender(allow_private=True, timeout_seconds=60)  # a name server may take its time to say no
    with socket.socket() as kept:  # nobody listens there
        kept.bind(("127.0.0.1", 0))
        assert (await sender.send(f"http://127.0.0.1:{kept.getsockname()[1]}/", {}, b"{}")).failure == "no connection"
    assert (await sender.send("http://nowhere.invalid/", {}, b"{}")).failure == "unknown host"
    assert (await sender.send(f"http://{'a' * 70}.example/", {}, b"{}")).failure == "unknown host"
    resolving(monkeypatch, ["127.0.0.3", "127.0.0.1"])  # nothing listens on the first
    sent = await sender.send(receiver.url(host="two.example.com"), {"webhook-id": "evt_1"}, b'{"data": {}}')
    assert sent.failure is None
    await sender.close()


async def test_the_certificate_must_be_the_names_and_not_the_addresses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate = self_signed("hooks.example.com", tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    asked_for: list[str | None] = []
    context.sni_callback = lambda _socket, name, _context: asked_for.append(name)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
        await writer.drain()

    monkeypatch.setattr(httpx, "create_ssl_context", lambda: ssl.create_default_context(cafile=str(certificate)))
    resolving(monkeypatch, ["127.0.0.1"])
    sender = Sender(allow_private=True)
    async with listening(serve, tls=context) as port:
        assert (await sender.send(f"https://hooks.example.com:{port}/", {}, b"{}")).status == 204
        assert (await sender.send(f"https://evil.example.com:{port}/", {}, b"{}")).failure == "no connection"
    assert asked_for == ["hooks.example.com", "evil.example.com"]
    await sender.close()


def self_signed(name: str, folder: Path) -> Path:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    path = folder / "certificate.pem"
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        + made.public_bytes(serialization.Encoding.PEM)
    )
    return path
