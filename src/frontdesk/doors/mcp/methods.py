"""Results of messages that call no tool."""

from frontdesk.access.clients.caller import Caller
from frontdesk.doors.mcp.cards import contents
from frontdesk.doors.mcp.elicitation import needs_consent_methods
from frontdesk.doors.mcp.messages import INVALID_PARAMS, METHOD_NOT_FOUND, RESOURCE_NOT_FOUND, Message
from frontdesk.doors.mcp.results import (
    discovered,
    initialized,
    resource_read,
    resource_templates,
    resources_list,
    tools_list,
)
from frontdesk.operations import extensions_for


def result_of(message: Message, caller: Caller | None, public_url: str) -> object:
    """The result of a message that calls no tool."""
    cards = caller is not None and needs_consent_methods(caller)
    if message.method == "tools/list":
        if message.params.get("cursor") is not None:
            raise message.rejection(INVALID_PARAMS, "Unknown cursor: all tools are on one page.")
        reachable = None if caller is None or caller.staff_id is None else caller.reachable
        extensions = () if caller is None else extensions_for(caller.scopes)
        return tools_list(public_url, modern=message.modern, reachable=reachable, cards=cards, extensions=extensions)
    if cards and message.method.startswith("resources/"):
        return _resource(message)
    if message.modern:
        if message.method == "server/discover":
            return discovered(public_url, cards=cards)
    elif message.method == "ping":
        return {}
    elif message.method == "initialize":
        if not isinstance(message.params.get("protocolVersion"), str):
            raise message.rejection(INVALID_PARAMS, "params.protocolVersion must be a string.")
        return initialized(message.params["protocolVersion"], public_url, cards=cards)
    raise message.rejection(METHOD_NOT_FOUND, "Method not found")


def _resource(message: Message) -> dict[str, object]:
    if message.method == "resources/list":
        return resources_list(modern=message.modern)
    if message.method == "resources/templates/list":
        return resource_templates(modern=message.modern)
    if message.method != "resources/read":
        raise message.rejection(METHOD_NOT_FOUND, "Method not found")
    uri = message.params.get("uri")
    found = contents(uri) if isinstance(uri, str) else None
    if found is None:
        code = INVALID_PARAMS if message.modern else RESOURCE_NOT_FOUND
        raise message.rejection(code, "Unknown resource. resources/list names every resource.")
    return resource_read(found, modern=message.modern)
