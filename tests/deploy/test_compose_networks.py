"""The service and the proxy of compose.yaml in real containers, on its networks: who may forward addresses."""

import contextlib
import ipaddress
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from frontdesk.access.limits.failed_attempts import PER_ADDRESS
from tests.deploy.containers import LIMITS, Engine
from tests.deploy.installing import ROOT
from tests.deploy.programs import need, run
from tests.support.stopping import NO_DRAIN

pytestmark = pytest.mark.heavy

NAME = "frontdesk-test-compose"
DOMAIN = "desk.localhost"  # for which Caddy issues certificates itself
OWN_DATABASE = ("FRONTDESK_DATABASE_URL", "FRONTDESK_MIGRATION_DATABASE_URL")
# Guesses client secrets with another forwarded address in each call, until it is refused or has guessed often enough.
CALLER = """
import ssl, sys, time, urllib.error, urllib.request
url, guesses = sys.argv[1], int(sys.argv[2])
unverified = ssl._create_unverified_context()
def status(path, body=None, **headers):
    try:
        return urllib.request.urlopen(urllib.request.Request(url + path, body, headers), context=unverified).status
    except urllib.error.HTTPError as error:
        return error.code
for _ in range(600):
    try:
        if status("/readyz") == 200:
            break
    except OSError:
        pass
    time.sleep(0.2)
if url.startswith("https"):
    headers = urllib.request.urlopen(url + "/healthz", context=unverified).headers
    assert headers.get_all("strict-transport-security") == ["max-age=31536000"], headers
for n in range(guesses):
    secret = f"grant_type=client_credentials&client_id=fd_{n:020}&client_secret=fds_{'x' * 43}"
    answer = status("/oauth/token", secret.encode(), **{"X-Forwarded-For": f"203.0.113.{n % 250}"})
    if answer == 429:
        break
print(answer)
"""


class Site:
    """The networks of the compose file, and its containers on them."""

    def __init__(self, engine: Engine, image: str, folder: Path) -> None:
        self.engine, self.image, self.folder = engine, image, folder
        self.compose: dict[str, Any] = yaml.safe_load((folder / "compose.yaml").read_text())
        self.given = 1

    def networks_of(self, service: str) -> dict[str, dict[str, str]]:
        networks = self.compose["services"][service]["networks"]
        return {name: (networks[name] or {}) if isinstance(networks, dict) else {} for name in networks}

    def is_internal(self, network: str) -> bool:
        return bool((self.compose["networks"][network] or {}).get("internal"))

    def _pools(self, network: str) -> list[dict[str, str]]:
        pools: list[dict[str, str]] = (self.compose["networks"][network] or {}).get("ipam", {}).get("config", [])
        return pools

    def _on(self, network: str, ipv4_address: str | None = None) -> str:
        """Docker takes addresses from `ip_range` where none is given; podman knows no other ones in such a network."""
        for pool in self._pools(network):
            self.given += 1
            ipv4_address = ipv4_address or str(ipaddress.ip_network(pool.get("ip_range", pool["subnet"]))[self.given])
        return f"--network={NAME}-{network}" + (f":ip={ipv4_address}" if ipv4_address else "")

    @contextlib.contextmanager
    def networks(self) -> Iterator[None]:
        created = []
        try:
            for name in self.compose["networks"]:
                options = ["--internal"] if self.is_internal(name) else []
                options += [f"--subnet={pool['subnet']}" for pool in self._pools(name)]
                self.engine.podman("network", "create", *options, f"{NAME}-{name}")
                created.append(name)
            yield
        except AssertionError as error:
            if not created:
                pytest.skip(f"podman cannot create networks here: {error}")
            raise
        finally:
            for name in created:
                self.engine.podman("network", "rm", "--force", f"{NAME}-{name}")
            volumes = [f"{NAME}-{name}" for name in self.compose["volumes"]]
            self.engine.podman("volume", "rm", "--force", *volumes)

    @contextlib.contextmanager
    def running(self, service: str, *options: str, command: tuple[str, ...]) -> Iterator[dict[str, str]]:
        """A container of the service, with its settings of the compose file; yields its addresses by network."""
        container = f"{NAME}-{service}"
        self.engine.podman("run", "--detach", f"--name={container}", *self._options(service), *options, *command)
        try:
            told = json.loads(self.engine.podman("inspect", container))[0]["NetworkSettings"]["Networks"]
            yield {name.removeprefix(f"{NAME}-"): network["IPAddress"] for name, network in told.items()}
        except AssertionError as error:
            error.add_note(self.engine.podman("logs", container)[-3000:])
            raise
        finally:
            self.engine.podman("rm", "--force", "--volumes", "--time", "0", container)

    def _options(self, name: str) -> list[str]:
        service = self.compose["services"][name]
        options = [*LIMITS, *(f"--env={key}={value}" for key, value in service.get("environment", {}).items())]
        options += [self._on(network, **settings) for network, settings in self.networks_of(name).items()]
        secrets = (self.folder / service["env_file"]).read_text().splitlines()
        options += [f"--env={line}" for line in secrets if not line.startswith(OWN_DATABASE)]
        for volume in service["volumes"]:
            source, _, target = volume.partition(":")
            place = str(self.folder / source) if source.startswith(".") else f"{NAME}-{source}"
            options.append(f"--volume={place}:{target}")
        options += [f"--cap-drop={each}" for each in service["cap_drop"]]
        options += [f"--cap-add={each}" for each in service.get("cap_add", ())]
        options += [f"--tmpfs={each}" for each in service.get("tmpfs", ())]
        assert service["read_only"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        return [*options, "--read-only", "--security-opt=no-new-privileges"]

    def call(self, network: str, url: str, *options: str, guesses: int = 5 * PER_ADDRESS) -> str:
        """The last status that a container on this network, with an address of its own, is answered."""
        caller = ("run", "--rm", *LIMITS, self._on(network), "--entrypoint=python3", *options, self.image)
        return self.engine.podman(*caller, "-c", CALLER, url, str(guesses)).strip()

    @contextlib.contextmanager
    def staying(self, network: str) -> Iterator[None]:
        """Somebody has the next address of this network, so that the next caller has another one."""
        container = f"{NAME}-staying"
        waiting = (self._on(network), "--entrypoint=sleep", self.image, "3600")
        self.engine.podman("run", "--detach", f"--name={container}", *LIMITS, *waiting)
        try:
            yield
        finally:
            self.engine.podman("rm", "--force", "--time", "0", container)


@pytest.fixture
def site(engine: Engine, image: str, tmp_path: Path) -> Iterator[Site]:
    need("caddy")
    folder = tmp_path / "compose"
    shutil.copytree(ROOT / "deploy" / "compose", folder, ignore=shutil.ignore_patterns("secrets*", "backups"))
    run(folder / "prepare", DOMAIN)
    site = Site(engine, image, folder)
    with site.networks():
        yield site


def test_callers_behind_the_proxy_have_limits_of_their_own_and_nobody_else_forges_an_address(site: Site) -> None:
    settings = [f"--env={name}={value}" for name, value in NO_DRAIN.items()]
    with site.running("frontdesk", *settings, site.image, command=("serve", "--demo")) as addresses:
        shared = addresses.keys() & site.networks_of("proxy").keys()
        assert shared
        for network in sorted(shared):  # Docker's name server may answer with the address on any of them
            check_callers(site, f"--add-host=frontdesk:{addresses[network]}")
        for network in site.networks_of("frontdesk"):
            assert site.call(network, f"http://{addresses[network]}:8080") == "429", f"forged on {network}"


def check_callers(site: Site, resolving: str) -> None:
    program = shutil.which("caddy")
    homes = ("--env=XDG_DATA_HOME=/data", "--env=XDG_CONFIG_HOME=/config")
    container = (
        resolving,
        *homes,
        f"--volume={program}:/usr/bin/caddy:ro",
        "--user=0",
        "--entrypoint=caddy",
        site.image,
    )
    command = ("run", "--adapter=caddyfile", "--config=/etc/caddy/Caddyfile")
    with site.running("proxy", *container, command=command) as addresses:
        (outside,) = (network for network in addresses if not site.is_internal(network))
        to_proxy = f"--add-host={DOMAIN}:{addresses[outside]}"
        assert site.call(outside, f"https://{DOMAIN}", to_proxy) == "429", "somebody who guesses is refused"
        with site.staying(outside):
            neighbour = site.call(outside, f"https://{DOMAIN}", to_proxy, guesses=1)
        assert neighbour == "401", "and nobody else"
