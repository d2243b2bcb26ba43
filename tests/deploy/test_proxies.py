"""The examples of reverse proxies, each started in front of a real service: bookings, streams, addresses of callers."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from frontdesk.access.limits.failed_attempts import PER_ADDRESS
from tests.console.signing_in import use_link
from tests.crash.harness import COMMAND
from tests.deploy.installing import ROOT
from tests.deploy.programs import environment, need, run
from tests.deploy.service import book, calling, is_booked, running
from tests.serving.authority import Authority
from tests.support.ports import free_port
from tests.support.stopping import NO_DRAIN

pytestmark = pytest.mark.heavy
WAIT_TIMEOUT = 60.0


@dataclass(frozen=True)
class Site:
    """A service whose public address is that of the proxy under test."""

    folder: Path
    port: int
    public_port: int
    redirect_port: int
    authority: Authority
    certificate: Path
    key: Path
    variables: dict[str, str]

    @property
    def url(self) -> str:
        return f"https://localhost:{self.public_port}"

    def example(self, *parts: str) -> str:
        """A file of `deploy`, for the ports and certificates of this site."""
        text = ROOT.joinpath("deploy", *parts).read_text()
        both = self.folder / "both.pem"
        both.write_text(self.certificate.read_text() + self.key.read_text())
        for written, here in (
            ("127.0.0.1:8080", f"127.0.0.1:{self.port}"),
            ("/etc/frontdesk/tls.crt", str(self.certificate)),
            ("/etc/frontdesk/tls.key", str(self.key)),
            ("/etc/frontdesk/tls.pem", str(both)),
            ("desk.example.org", "localhost"),
        ):
            text = text.replace(written, here)
        return text


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    need("nginx", "caddy", "haproxy")
    folder = tmp_path_factory.mktemp("site")
    authority = Authority()
    certificate, key, _ = authority.issue(folder)
    port, public_port = free_port(), free_port()
    variables = environment(
        **NO_DRAIN, FRONTDESK_PORT=str(port), FRONTDESK_LOG_LEVEL="error",
        FRONTDESK_BASE_URL=f"https://localhost:{public_port}", FRONTDESK_TRUSTED_PROXIES="127.0.0.1",
    )  # fmt: skip
    site = Site(folder, port, public_port, free_port(), authority, certificate, key, variables)
    with running([COMMAND, "serve", "--demo"], folder=folder, variables=variables, url=f"http://127.0.0.1:{port}"):
        yield site


def nginx(site: Site) -> list[str]:
    text = site.example("nginx", "frontdesk.conf").replace("listen 80;", f"listen 127.0.0.1:{site.redirect_port};")
    text = text.replace("listen 443", f"listen 127.0.0.1:{site.public_port}")
    paths = "".join(
        f"{kind}_temp_path {site.folder}/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    path = site.folder / "nginx.conf"
    path.write_text(
        f"daemon off;\npid {site.folder}/nginx.pid;\nevents {{}}\nhttp {{\naccess_log off;\n{paths}{text}}}\n"
    )
    return ["nginx", "-e", str(site.folder / "nginx.log"), "-c", str(path)]


def caddy(site: Site) -> list[str]:
    # Without HTTP/3, for which no port is held.
    ports = f"http_port {site.redirect_port}\n\thttps_port {site.public_port}"
    options = f"{{\n\tadmin off\n\t{ports}\n\tservers {{\n\t\tprotocols h1 h2\n\t}}\n}}\n"
    text = site.example("caddy", "Caddyfile")
    assert "\nlocalhost {" in text
    text = text.replace("\nlocalhost {", f"\n{options}localhost {{\n\ttls {site.certificate} {site.key}\n", 1)
    path = site.folder / "Caddyfile"
    path.write_text(text)
    return ["caddy", "run", "--adapter", "caddyfile", "--config", str(path)]


def haproxy(site: Site) -> list[str]:
    text = site.example("haproxy", "haproxy.cfg").replace("bind :80", f"bind 127.0.0.1:{site.redirect_port}")
    path = site.folder / "haproxy.cfg"
    path.write_text(text.replace("bind :443", f"bind 127.0.0.1:{site.public_port}"))
    run("haproxy", "-c", "-f", path)
    return ["haproxy", "-db", "-f", str(path)]


@pytest.mark.parametrize("proxy", [nginx, caddy, haproxy])
async def test_a_proxy_passes_bookings_streams_and_addresses(site: Site, proxy: Callable[[Site], list[str]]) -> None:
    homes = dict.fromkeys(("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"), str(site.folder))
    trust = site.authority.trusting()
    with running(proxy(site), folder=site.folder, variables=environment(**homes), url=site.url, trust=trust):
        redirect = httpx.get(f"http://localhost:{site.redirect_port}/docs", timeout=30)
        assert redirect.status_code == 308
        assert redirect.headers["location"].startswith("https://localhost")
        page = httpx.get(f"{site.url}/healthz", verify=trust, timeout=30)
        assert page.headers.get_list("strict-transport-security") == ["max-age=31536000"]
        credentials = json.loads((site.folder / ".frontdesk" / "demo-credentials.json").read_text())["agent"]
        async with listening(site) as heard:
            booked = await asyncio.to_thread(_book, site, credentials)
            async with asyncio.timeout(WAIT_TIMEOUT):
                await heard.wait()
        assert booked
        await asyncio.to_thread(_guess, site)


@contextlib.asynccontextmanager
async def listening(site: Site) -> AsyncIterator[asyncio.Event]:
    """A calendar page of the console is open; the event is set when it hears of a booking, at once."""
    link = run(COMMAND, "staff", "list", "--practice", "demo", "--json", folder=site.folder, variables=site.variables)
    member = json.loads(link)[0]["staffId"]
    output = run(COMMAND, "staff", "link", member, "--json", folder=site.folder, variables=site.variables)
    token = json.loads(output)["link"].partition("#")[2]
    opened, heard = asyncio.Event(), asyncio.Event()
    async with httpx.AsyncClient(base_url=site.url, verify=site.authority.trusting(), timeout=WAIT_TIMEOUT) as browser:
        assert (await use_link(browser, token)).status_code == 303

        async def watch() -> None:
            async with browser.stream("GET", "/console/live") as answer:
                assert answer.status_code == 200
                async for line in answer.aiter_lines():
                    if line.startswith("retry"):
                        opened.set()
                    elif line == "event: calendar":
                        heard.set()

        watching = asyncio.create_task(watch())
        async with asyncio.timeout(WAIT_TIMEOUT):
            await opened.wait()
        yield heard
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


def _book(site: Site, credentials: dict[str, str]) -> bool:
    with calling(site.url, credentials, trust=site.authority.trusting()) as http:
        return is_booked(http, book(http))


def _guess(site: Site) -> None:
    """Somebody guesses secrets, with a forged address in each call: their own address is limited, and no other."""
    statuses = []
    with _from("127.0.0.2", site) as guesser:
        for n in range(5 * PER_ADDRESS):
            statuses.append(_wrong_secret(guesser, n, {"X-Forwarded-For": f"203.0.113.{n % 250}"}))
            if statuses[-1] == 429:
                break
    assert statuses[-1] == 429
    with _from("127.0.0.3", site) as neighbour:
        assert _wrong_secret(neighbour, -1, {}) == 401


def _from(address: str, site: Site) -> httpx.Client:
    transport = httpx.HTTPTransport(verify=site.authority.trusting(), local_address=address)
    return httpx.Client(base_url=site.url, transport=transport, timeout=30)


def _wrong_secret(client: httpx.Client, number: int, headers: dict[str, str]) -> int:
    form = {"grant_type": "client_credentials", "client_id": f"fd_{number:020}", "client_secret": "fds_" + "x" * 43}
    return client.post("/oauth/token", data=form, headers=headers).status_code
