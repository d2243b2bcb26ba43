"""The SMART configuration: how clients get tokens for the FHIR door."""

from frontdesk.access.clients.assertions import AUTHENTICATION_METHODS
from frontdesk.access.clients.public_keys import ALGORITHMS
from frontdesk.access.clients.smart_scopes import SMART_SCOPES
from frontdesk.settings import Settings

_CAPABILITIES = ["client-confidential-asymmetric", "client-confidential-symmetric", "permission-v1", "permission-v2"]


def smart_configuration(settings: Settings) -> dict[str, object]:
    return {
        "token_endpoint": settings.token_url,
        "token_endpoint_auth_methods_supported": AUTHENTICATION_METHODS,
        "token_endpoint_auth_signing_alg_values_supported": ALGORITHMS,
        "grant_types_supported": ["client_credentials"],
        "scopes_supported": ["system/*.rs", *SMART_SCOPES],
        "capabilities": _CAPABILITIES,
    }
