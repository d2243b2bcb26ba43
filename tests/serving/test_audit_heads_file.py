from collections.abc import Callable
from pathlib import Path

import pytest

from frontdesk.serving.address import ServingError
from frontdesk.serving.audit_heads_file import prepare_audit_heads_file
from frontdesk.settings import Settings


def test_the_file_is_made_private(tmp_path: Path) -> None:
    file = tmp_path / "heads"
    prepare_audit_heads_file(Settings(data_dir=tmp_path, audit_heads_file=file))
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("link", [Path.hardlink_to, Path.symlink_to])
def test_the_file_of_someone_else_is_not_given_to_the_workers(
    tmp_path: Path, link: Callable[[Path, Path], None]
) -> None:
    other, file = tmp_path / "other", tmp_path / "heads"
    other.write_text("")
    owner = other.stat().st_uid
    link(file, other)
    with pytest.raises(ServingError, match="FRONTDESK_AUDIT_HEADS_FILE cannot be used"):
        prepare_audit_heads_file(Settings(data_dir=tmp_path, audit_heads_file=file))
    assert other.stat().st_uid == owner
