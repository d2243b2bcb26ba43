"""The actions of staff and of commands, by the name that audit records carry."""

from collections.abc import Mapping
from functools import cache, partial

from frontdesk.audit.sentences import Action, AuditSentence
from frontdesk.feature import features


def _action(name: str, title: str, done: str, with_names: str | None = None, *, is_view: bool = False) -> Action:
    """The sentences without the actor, with whom each begins."""
    return Action(name, title, AuditSentence(f"%(actor)s {done}", with_names and f"%(actor)s {with_names}"), is_view)


_view = partial(_action, is_view=True)

_CORE = (
    # Of the calendar, patients, appointments and the trail itself.
    _view(
        "console.calendar",
        "Look at the calendar",
        "looked at the calendar",
        "looked at the calendar with appointments of %(names)s",
    ),
    _view(
        "console.day_sheet",
        "Look at the day sheet",
        "looked at the day sheet",
        "looked at the day sheet with appointments of %(names)s",
    ),
    _view(
        "console.arrivals",
        "Look at the arrivals board",
        "looked at the arrivals board",
        "looked at the arrivals board with %(names)s",
    ),
    _view(
        "console.patient",
        "Look at a patient's record",
        "looked at a patient's record",
        "looked at the record of %(names)s",
    ),
    _view(
        "console.appointment",
        "Look at an appointment",
        "looked at an appointment",
        "looked at an appointment of %(names)s",
    ),
    _view(
        "console.search_patients",
        "Search patients",
        "searched the patients",
        "searched the patients and found %(names)s",
    ),
    _action(
        "console.compare_patients",
        "Compare patients with those on file",
        "compared patients with those on file",
        "compared patients with those on file and found %(names)s",
    ),
    _view(
        "console.blocked_appointments",
        "Look at appointments in blocked time",
        "looked at appointments in blocked time",
        "looked at appointments of %(names)s in blocked time",
    ),
    _action("console.block_time", "Block time", "blocked time", "blocked time of %(names)s"),
    _action("console.unblock_time", "Open blocked time", "opened blocked time", "opened blocked time of %(names)s"),
    _view(
        "console.audit",
        "Look at the audit trail",
        "looked at the audit trail",
        "looked at the audit trail with %(names)s",
    ),
    _action("console.export_audit", "Export the audit trail", "exported the audit trail"),
    _action("console.verify_audit", "Verify the audit trail", "verified the audit trail"),
    _action("console.check_system", "Check the scheduling system", "checked the scheduling system"),
    # Of sign-in and staff.
    _action("console.sign_in", "Sign in", "signed in", "signed in as %(names)s"),
    _action("console.sign_out", "Sign out", "signed out", "signed out %(names)s"),
    _action(
        "console.sign_out_everywhere", "Sign out everywhere", "signed out everywhere", "signed out %(names)s everywhere"
    ),
    _action("console.lock", "Lock the desk", "locked the desk", "locked the desk of %(names)s"),
    _action("console.unlock", "Unlock the desk", "unlocked the desk", "unlocked the desk as %(names)s"),
    _action("console.set_pin", "Choose a PIN", "set a PIN", "set a PIN for %(names)s"),
    _action("console.remove_pin", "Remove a PIN", "removed a PIN", "removed the PIN of %(names)s"),
    _action(
        "console.link_identity",
        "Link an account of the identity provider",
        "linked an account of the identity provider",
        "linked an account of the identity provider for %(names)s",
    ),
    _action(
        "console.new_link", "Create a sign-in link", "created a sign-in link", "created a sign-in link for %(names)s"
    ),
    _action("console.mail_link", "Mail a sign-in link", "mailed a sign-in link", "mailed a sign-in link to %(names)s"),
    _action("console.reset_sign_in", "Reset the sign-in", "reset the sign-in", "reset the sign-in of %(names)s"),
    _action("console.end_session", "End a session", "ended a session", "ended a session of %(names)s"),
    _action("console.add_passkey", "Add a passkey", "added a passkey", "added a passkey for %(names)s"),
    _action("console.remove_passkey", "Remove a passkey", "removed a passkey", "removed a passkey of %(names)s"),
    _action("console.add_staff", "Add a staff member", "added a staff member", "added the staff member %(names)s"),
    _action(
        "console.remove_staff", "Remove a staff member", "removed a staff member", "removed the staff member %(names)s"
    ),
    _action(
        "console.enable_staff", "Enable a staff member", "enabled a staff member", "enabled the staff member %(names)s"
    ),
    _action(
        "console.disable_staff",
        "Disable a staff member",
        "disabled a staff member",
        "disabled the staff member %(names)s",
    ),
    _action(
        "console.set_staff_role",
        "Change the role of a staff member",
        "changed the role of a staff member",
        "changed the role of %(names)s",
    ),
    # Of clients and assistants.
    _action("console.add_client", "Add a client", "added a client", "added the client %(names)s"),
    _action("console.change_client", "Change a client", "changed a client", "changed the client %(names)s"),
    _action("console.enable_client", "Enable a client", "enabled a client", "enabled the client %(names)s"),
    _action("console.disable_client", "Disable a client", "disabled a client", "disabled the client %(names)s"),
    _action(
        "console.trust_client",
        "Trust a client to ask people",
        "trusted a client to ask people",
        "trusted the client %(names)s to ask people",
    ),
    _action(
        "console.distrust_client",
        "End the trust in a client",
        "ended the trust in a client to ask people",
        "ended the trust in the client %(names)s to ask people",
    ),
    _action("command.remove_client", "Remove a client", "removed a client", "removed the client %(names)s"),
    _action(
        "console.rotate_client_secret",
        "Create a new secret of a client",
        "created a new secret of a client",
        "created a new secret for %(names)s",
    ),
    _action(
        "console.revoke_client_tokens",
        "Revoke the access tokens of a client",
        "revoked the access tokens of a client",
        "revoked the access tokens of %(names)s",
    ),
    _action(
        "console.forget_client_misses",
        "Reset the failed matches of a client",
        "reset the failed matches of a client",
        "reset the failed matches of %(names)s",
    ),
    _action(
        "console.connect_assistant",
        "Connect an assistant",
        "connected an assistant",
        "connected the assistant %(names)s",
    ),
    _action(
        "console.disconnect_assistant",
        "Disconnect an assistant",
        "disconnected an assistant",
        "disconnected the assistant %(names)s",
    ),
    _action(
        "console.trust_assistants",
        "Trust assistants of a host to ask people",
        "trusted the assistants of a host to ask people",
    ),
    _action(
        "console.distrust_assistants",
        "End the trust in assistants of a host",
        "ended the trust in the assistants of a host to ask people",
    ),
    _action("command.read_events", "Read events", "read events", "read events about %(names)s"),
    # Of webhooks.
    _action("console.add_webhook", "Add a webhook", "added a webhook"),
    _action("console.remove_webhook", "Remove a webhook", "removed a webhook"),
    _action("console.rotate_webhook_secret", "Create a new secret of a webhook", "created a new secret of a webhook"),
    _action("console.test_webhook", "Send a test message to a webhook", "sent a test message to a webhook"),
    _action("console.pause_webhook", "Pause a webhook", "paused a webhook"),
    _action("console.resume_webhook", "Resume a webhook", "resumed a webhook"),
    _action("console.replay_webhook", "Send the events of a webhook again", "sent the events of a webhook again"),
    _action("command.add_webhook", "Add a webhook by command", "added a webhook"),
    _action("command.remove_webhook", "Remove a webhook by command", "removed a webhook"),
    _action(
        "command.rotate_webhook_secret",
        "Create a new secret of a webhook by command",
        "created a new secret of a webhook",
    ),
    # Of the practice file and the practice.
    _action("console.import_practice_file", "Import the practice file", "imported the practice file"),
    _action("console.export_practice_file", "Export the practice file", "exported the practice file"),
    _action("console.change_booking_rules", "Change the booking rules", "changed the booking rules"),
    _action(
        "console.change_closures",
        "Change the closures of locations",
        "changed the closures of locations",
        "changed the closures of %(names)s",
    ),
    _action("console.add_location", "Add a location", "added a location", "added the location %(names)s"),
    _action("console.change_location", "Change a location", "changed a location", "changed the location %(names)s"),
    _action("console.remove_location", "Remove a location", "removed a location", "removed the location %(names)s"),
    _action("console.add_provider", "Add a provider", "added a provider", "added the provider %(names)s"),
    _action("console.change_provider", "Change a provider", "changed a provider", "changed the provider %(names)s"),
    _action("console.remove_provider", "Remove a provider", "removed a provider", "removed the provider %(names)s"),
    _action("console.add_visit_type", "Add a visit type", "added a visit type"),
    _action("console.change_visit_type", "Change a visit type", "changed a visit type"),
    _action("console.remove_visit_type", "Remove a visit type", "removed a visit type"),
    _action("console.add_procedure", "Add a procedure", "added a procedure"),
    _action("console.change_procedure", "Change a procedure", "changed a procedure"),
    _action("console.remove_procedure", "Remove a procedure", "removed a procedure"),
    _action(
        "command.export_patients",
        "Export the practice file with patients",
        "exported the practice file with patients",
        "exported the practice file with the data of %(names)s",
    ),
    _action("command.import_patients", "Import patients", "imported patients", "imported the patients %(names)s"),
    _action("command.suspend_practice", "Suspend the practice", "suspended the practice"),
    _action("command.resume_practice", "Resume the practice", "resumed the practice"),
    _action("command.remove_practice", "Remove the practice", "removed the practice"),
    # Of the service as a whole.
    _action("command.rotate_keys", "Rotate the keys", "rotated the keys"),
    _action("command.reencrypt_keys", "Encrypt the keys again", "encrypted the keys again"),
    _action("command.backup", "Make a backup", "made a backup"),
    _action("command.restore", "Restore a backup", "restored a backup"),
)


@cache
def actions() -> Mapping[str, Action]:
    """By name, those of the core and of the features."""
    of_features = (action for feature in features() for action in feature.parts.actions)
    return {action.name: action for action in (*_CORE, *of_features)}
