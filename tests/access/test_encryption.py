"""The secret key at rest: who can open what, and which key files are refused."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from frontdesk.access.keys.encryption import KeyCipher, SecretKeyError, load_secret_key
from frontdesk.settings import Settings

OLD = "an old secret of the operator that is long enough"
NEW = "the new secret of the operator that is long enough"


def test_what_was_encrypted_is_decrypted() -> None:
    cipher = KeyCipher([OLD])
    assert cipher.decrypt(cipher.encrypt(b"key", b"here"), b"here") == b"key"


def test_the_same_text_is_never_encrypted_twice_alike() -> None:
    cipher = KeyCipher([OLD])
    assert cipher.encrypt(b"key", b"here") != cipher.encrypt(b"key", b"here")


def test_encrypted_text_moved_to_another_place_is_not_decrypted() -> None:
    cipher = KeyCipher([OLD])
    with pytest.raises(SecretKeyError):
        cipher.decrypt(cipher.encrypt(b"key", b"here"), b"there")


def test_every_altered_byte_is_noticed() -> None:
    cipher = KeyCipher([OLD])
    encrypted = cipher.encrypt(b"key", b"here")
    for place in range(len(encrypted)):
        altered = encrypted[:place] + bytes([encrypted[place] ^ 1]) + encrypted[place + 1 :]
        with pytest.raises(SecretKeyError):
            cipher.decrypt(altered, b"here")


@pytest.mark.parametrize("length", range(29))
def test_truncated_text_is_refused(length: int) -> None:
    cipher = KeyCipher([OLD])
    with pytest.raises(SecretKeyError):
        cipher.decrypt(cipher.encrypt(b"", b"here")[:length], b"here")


def test_a_new_secret_in_front_still_decrypts_what_the_old_one_encrypted() -> None:
    encrypted = KeyCipher([OLD]).encrypt(b"key", b"here")
    assert KeyCipher([NEW, OLD]).decrypt(encrypted, b"here") == b"key"


def test_the_first_secret_encrypts() -> None:
    encrypted = KeyCipher([NEW, OLD]).encrypt(b"key", b"here")
    assert KeyCipher([NEW]).decrypt(encrypted, b"here") == b"key"
    with pytest.raises(SecretKeyError, match="FRONTDESK_SECRET_KEY"):
        KeyCipher([OLD]).decrypt(encrypted, b"here")


def test_secrets_that_share_their_first_byte_are_told_apart() -> None:
    ciphers = [KeyCipher([f"secret number {number:04} of the operator"]) for number in range(600)]
    encrypted = [cipher.encrypt(b"key", b"here") for cipher in ciphers]
    by_byte: dict[int, list[int]] = {}
    for number, text in enumerate(encrypted):
        by_byte.setdefault(text[0], []).append(number)
    one, other = next(numbers for numbers in by_byte.values() if len(numbers) > 1)[:2]
    both = KeyCipher([f"secret number {number:04} of the operator" for number in (one, other)])
    assert both.decrypt(encrypted[one], b"here") == both.decrypt(encrypted[other], b"here") == b"key"


def test_several_secrets_come_from_the_setting(tmp_path: Path) -> None:
    encrypted = load_secret_key(Settings(data_dir=tmp_path, secret_key=OLD)).encrypt(b"key", b"here")
    both = load_secret_key(Settings(data_dir=tmp_path, secret_key=f" {NEW} , {OLD} "))
    assert both.decrypt(encrypted, b"here") == b"key"
    assert KeyCipher([NEW]).decrypt(both.encrypt(b"key", b"here"), b"here") == b"key"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", ["short", "x" * 31, f"{NEW},", f"{NEW},short", ""])
def test_short_secrets_are_refused_without_being_shown(tmp_path: Path, text: str) -> None:
    with pytest.raises(SecretKeyError, match="FRONTDESK_SECRET_KEY must hold at least 32") as raised:
        load_secret_key(Settings(data_dir=tmp_path, secret_key=text))
    assert NEW not in str(raised.value)


def test_a_private_file_is_made_on_first_start_and_used_ever_after(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path / "data")
    encrypted = load_secret_key(settings).encrypt(b"key", b"here")
    path = settings.data_dir / "secret.key"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(settings.data_dir.stat().st_mode) == 0o700
    assert [entry.name for entry in settings.data_dir.iterdir()] == ["secret.key"]
    assert load_secret_key(settings).decrypt(encrypted, b"here") == b"key"


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o666])
def test_a_file_that_others_can_reach_is_refused_in_one_sentence(tmp_path: Path, mode: int) -> None:
    settings = Settings(data_dir=tmp_path)
    load_secret_key(settings)
    (tmp_path / "secret.key").chmod(mode)
    with pytest.raises(SecretKeyError, match=r"open to other accounts: run chmod 600 .*secret\.key\.$"):
        load_secret_key(settings)


def test_a_damaged_file_is_refused_and_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "secret.key"
    for content in (b"", b"cut off", b"\xff\xfe" * 40):
        path.write_bytes(content)
        path.chmod(0o600)
        with pytest.raises(SecretKeyError, match="secret key file"):
            load_secret_key(Settings(data_dir=tmp_path))
        assert path.read_bytes() == content


def test_a_file_can_hold_the_new_and_the_old_secret(tmp_path: Path) -> None:
    path = tmp_path / "secret.key"
    path.write_text(f"{NEW},\n{OLD}\n")
    path.chmod(0o600)
    encrypted = KeyCipher([OLD]).encrypt(b"key", b"here")
    assert load_secret_key(Settings(data_dir=tmp_path)).decrypt(encrypted, b"here") == b"key"


def test_a_data_directory_that_cannot_be_used_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SecretKeyError, match=r"cannot be used: .*\.$"):
        load_secret_key(Settings(data_dir=tmp_path / "file"))


def test_a_secret_that_another_process_made_meanwhile_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "secret.key"

    def overtaken(_size: int) -> str:
        path.write_text(OLD)
        path.chmod(0o600)
        return NEW

    monkeypatch.setattr("frontdesk.access.keys.encryption.secrets.token_urlsafe", overtaken)
    cipher = load_secret_key(Settings(data_dir=tmp_path))
    assert KeyCipher([OLD]).decrypt(cipher.encrypt(b"key", b"here"), b"here") == b"key"
    assert path.read_text() == OLD
    assert [entry.name for entry in tmp_path.iterdir()] == ["secret.key"]


def test_processes_that_start_together_agree_on_one_secret(tmp_path: Path) -> None:
    program = (
        "import sys, pathlib\n"
        "from frontdesk.access.keys.encryption import load_secret_key\n"
        "from frontdesk.settings import Settings\n"
        "sys.stdin.readline()\n"
        "print(load_secret_key(Settings(data_dir=pathlib.Path(sys.argv[1]))).encrypt(b'key', b'here').hex())\n"
    )
    started = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(tmp_path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=dict(os.environ),
        )
        for _ in range(4)
    ]
    for process in started:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    encrypted = [process.communicate()[0].strip() for process in started]
    cipher = load_secret_key(Settings(data_dir=tmp_path))
    assert [cipher.decrypt(bytes.fromhex(text), b"here") for text in encrypted] == [b"key"] * 4
    assert [entry.name for entry in tmp_path.iterdir()] == ["secret.key"]
