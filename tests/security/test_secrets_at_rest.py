"""A whole installation on disk, made with the command line: no key and no secret is readable in it, and no other
account can look. The operator's secret key can be replaced without anybody noticing."""

import base64
import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from frontdesk.access.clients.secrets import authenticate
from frontdesk.access.clients.tokens import Tokens
from frontdesk.access.keys.encryption import load_secret_key
from frontdesk.access.keys.ring import PURPOSES, KeyRing
from frontdesk.settings import Settings
from frontdesk.store.database import SERVICE_ROLE, Database
from frontdesk.store.embedded.server import EmbeddedPostgres
from tests.support.world import PRACTICE

NEW = "a new secret key that is long enough to be one"


class Installation:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.postgres = EmbeddedPostgres(folder / "postgres")
        (folder.parent / "practice.yaml").write_text(PRACTICE.replace("SLUG", "harbor"))
        self.run("practice", "import", str(folder.parent / "practice.yaml"))
        self.postgres.start()  # and it stays, for the commands that follow
        added = self.run(
            "client", "add", "--practice", "harbor", "--name", "Agent", "--grant", "agent", "--scope", "all", "--json"
        )
        self.client: dict[str, str] = json.loads(added.stdout)

    def run(self, *words: str, secret_key: str | None = None) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "FRONTDESK_DATA_DIR": str(self.folder)}
        if secret_key is not None:
            environment["FRONTDESK_SECRET_KEY"] = secret_key
        command = [str(Path(sys.executable).parent / "frontdesk"), *words]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=200, check=False)

    async def ring(self, database: Database, secret_key: str | None = None) -> KeyRing:
        ring = KeyRing(database, load_secret_key(Settings(data_dir=self.folder, secret_key=secret_key)))
        await ring.load()
        return ring


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    made = Installation(tmp_path_factory.mktemp("installation") / "data")
    yield made
    made.postgres.stop()


@pytest.fixture
async def own_database(installed: Installation) -> Database:
    opened = Database(installed.postgres.dsn(SERVICE_ROLE), pool_size=2)
    await opened.open()
    return opened


def spellings(secret: bytes) -> list[bytes]:
    encoded = [base64.b64encode(secret), base64.urlsafe_b64encode(secret)]
    return [secret, secret.hex().encode(), secret.hex().upper().encode(), *(text.rstrip(b"=") for text in encoded)]


async def test_no_key_and_no_secret_is_readable_on_disk(installed: Installation, own_database: Database) -> None:
    ring = await installed.ring(own_database)
    keys = [key for purpose in PURPOSES for key in ring.secrets(purpose)]
    secret = installed.client["clientSecret"]
    needles = [text for key in keys for text in spellings(key)]
    needles += [secret.encode(), *spellings(base64.urlsafe_b64decode(secret.removeprefix("fds_") + "="))]
    await own_database.close()
    installed.postgres.stop_and_await_end()  # writes everything to the tables' files
    installed.postgres.start()
    looked_into = 0
    client_id_seen = False
    for path in installed.folder.rglob("*"):
        if path.is_file() and not path.is_symlink():
            try:
                content = path.read_bytes()
            except FileNotFoundError:  # PostgreSQL is running, and puts files away
                continue
            looked_into += len(content)
            client_id_seen |= installed.client["clientId"].encode() in content
            assert not any(needle in content for needle in needles), path.name
    assert looked_into > 20_000_000  # the tables and the write-ahead log are in there
    assert client_id_seen  # what was looked for would have been found


async def test_the_data_directory_and_the_sockets_are_for_their_owner_alone(installed: Installation) -> None:
    assert stat.S_IMODE(installed.folder.stat().st_mode) & 0o066 == 0
    assert stat.S_IMODE((installed.folder / "secret.key").stat().st_mode) == 0o600
    data = installed.folder / "postgres" / "data"
    assert stat.S_IMODE(data.stat().st_mode) & 0o077 == 0
    sockets = Path(installed.postgres.dsn(SERVICE_ROLE).split("host=")[1].split("&")[0].replace("%2F", "/"))
    assert stat.S_IMODE(sockets.stat().st_mode) & 0o077 == 0
    assert stat.S_IMODE((sockets / ".s.PGSQL.5432").stat().st_mode) & 0o077 == 0


async def test_the_secret_key_is_replaced_and_nobody_notices(installed: Installation, own_database: Database) -> None:
    old = (installed.folder / "secret.key").read_text().strip()
    before = await installed.ring(own_database)
    client = await authenticate(own_database, before, installed.client["clientId"], installed.client["clientSecret"])
    settings = Settings(data_dir=installed.folder)
    token = Tokens(before, settings).issue(client, client.scopes).text

    reencrypted = installed.run("keys", "reencrypt", secret_key=f"{NEW},{old}")
    assert reencrypted.returncode == 0, reencrypted.stderr
    after = await installed.ring(own_database, NEW)
    assert (await Tokens(after, settings).verify(token)).client_id == client.client_id
    assert [after.secrets(purpose) for purpose in PURPOSES] == [before.secrets(purpose) for purpose in PURPOSES]
    await authenticate(own_database, after, installed.client["clientId"], installed.client["clientSecret"])
    await own_database.close()

    refused = installed.run("keys", "list", secret_key=old)
    assert refused.returncode == 1
    assert "FRONTDESK_SECRET_KEY" in refused.stderr
    assert old not in refused.stderr + refused.stdout
    listed = installed.run("keys", "list", "--json", secret_key=NEW)
    assert listed.returncode == 0, listed.stderr
    shown = listed.stdout.encode()
    assert not any(text in shown for purpose in PURPOSES for key in after.secrets(purpose) for text in spellings(key))
