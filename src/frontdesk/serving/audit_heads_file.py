"""The file to which workers append signed heads of audit trails."""

import errno
import os

from frontdesk.privileges import worker_account
from frontdesk.serving.address import ServingError
from frontdesk.settings import Settings


def prepare_audit_heads_file(settings: Settings) -> None:
    """Creates the file if there is none, and gives it to the account of the workers."""
    if settings.audit_heads_file is None:
        return
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
        descriptor = os.open(settings.audit_heads_file, flags, 0o600)
        try:
            if os.fstat(descriptor).st_nlink > 1:  # it may be a file of someone else
                raise OSError(errno.EMLINK, "it has several names")
            if (account := worker_account()) is not None:
                os.fchown(descriptor, account.user, account.group)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise ServingError(
            f"The file {settings.audit_heads_file} of FRONTDESK_AUDIT_HEADS_FILE cannot be used: {error.strerror}."
        ) from None
