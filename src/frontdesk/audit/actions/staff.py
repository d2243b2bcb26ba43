"""Of sign-in and staff."""

from frontdesk.audit.sentences import Action, AuditSentence

ACTIONS = (
    Action("console.sign_in", "Sign in", AuditSentence("%(actor)s signed in", "%(actor)s signed in as %(names)s")),
    Action("console.sign_out", "Sign out", AuditSentence("%(actor)s signed out", "%(actor)s signed out %(names)s")),
    Action(
        "console.sign_out_everywhere",
        "Sign out everywhere",
        AuditSentence("%(actor)s signed out everywhere", "%(actor)s signed out %(names)s everywhere"),
    ),
    Action(
        "console.lock",
        "Lock the desk",
        AuditSentence("%(actor)s locked the desk", "%(actor)s locked the desk of %(names)s"),
    ),
    Action(
        "console.unlock",
        "Unlock the desk",
        AuditSentence("%(actor)s unlocked the desk", "%(actor)s unlocked the desk as %(names)s"),
    ),
    Action(
        "console.set_pin", "Choose a PIN", AuditSentence("%(actor)s set a PIN", "%(actor)s set a PIN for %(names)s")
    ),
    Action(
        "console.remove_pin",
        "Remove a PIN",
        AuditSentence("%(actor)s removed a PIN", "%(actor)s removed the PIN of %(names)s"),
    ),
    Action(
        "console.link_identity",
        "Link an account of the identity provider",
        AuditSentence(
            "%(actor)s linked an account of the identity provider",
            "%(actor)s linked an account of the identity provider for %(names)s",
        ),
    ),
    Action(
        "console.new_link",
        "Create a sign-in link",
        AuditSentence("%(actor)s created a sign-in link", "%(actor)s created a sign-in link for %(names)s"),
    ),
    Action(
        "console.mail_link",
        "Mail a sign-in link",
        AuditSentence("%(actor)s mailed a sign-in link", "%(actor)s mailed a sign-in link to %(names)s"),
    ),
    Action(
        "console.reset_sign_in",
        "Reset the sign-in",
        AuditSentence("%(actor)s reset the sign-in", "%(actor)s reset the sign-in of %(names)s"),
    ),
    Action(
        "console.end_session",
        "End a session",
        AuditSentence("%(actor)s ended a session", "%(actor)s ended a session of %(names)s"),
    ),
    Action(
        "console.add_passkey",
        "Add a passkey",
        AuditSentence("%(actor)s added a passkey", "%(actor)s added a passkey for %(names)s"),
    ),
    Action(
        "console.remove_passkey",
        "Remove a passkey",
        AuditSentence("%(actor)s removed a passkey", "%(actor)s removed a passkey of %(names)s"),
    ),
    Action(
        "console.add_staff",
        "Add a staff member",
        AuditSentence("%(actor)s added a staff member", "%(actor)s added the staff member %(names)s"),
    ),
    Action(
        "console.remove_staff",
        "Remove a staff member",
        AuditSentence("%(actor)s removed a staff member", "%(actor)s removed the staff member %(names)s"),
    ),
    Action(
        "console.enable_staff",
        "Enable a staff member",
        AuditSentence("%(actor)s enabled a staff member", "%(actor)s enabled the staff member %(names)s"),
    ),
    Action(
        "console.disable_staff",
        "Disable a staff member",
        AuditSentence("%(actor)s disabled a staff member", "%(actor)s disabled the staff member %(names)s"),
    ),
    Action(
        "console.set_staff_role",
        "Change the role of a staff member",
        AuditSentence("%(actor)s changed the role of a staff member", "%(actor)s changed the role of %(names)s"),
    ),
)
