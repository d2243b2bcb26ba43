"""A voice agent over the Model Context Protocol, with a scripted model that you can replace.

    .venv/bin/python examples/voice_agent.py                     # a caller who says yes
    .venv/bin/python examples/voice_agent.py --caller declines   # one who says no: nothing is changed
    .venv/bin/python examples/voice_agent.py --caller typed --model my_agent:make

The model decides what to say and which tool to call. It does not confirm writes: the loop reads the proposal back to
the caller, and only after a clear yes sends the identical call with the token. The model never sees the token.

A model is any object with a `decide` method. With a vendor's SDK, `my_agent.py` looks like this:

    from voice_agent import Call, HangUp, Say

    class Vendor:
        def __init__(self, client): self.client = client

        async def decide(self, conversation, tools):
            reply = await self.client.answer(tools=tools, messages=[(turn.who, turn.text) for turn in conversation])
            if reply.tool:
                return Call(reply.tool, reply.arguments)
            return HangUp(reply.text) if reply.is_last else Say(reply.text)

    def make(): return Vendor(TheirClient())
"""

import argparse
import asyncio
import json
import os
import re
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, Protocol

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

URL = os.environ.get("FRONTDESK_BASE_URL", "http://127.0.0.1:8080")
CREDENTIALS = Path(os.environ.get("FRONTDESK_DATA_DIR", ".frontdesk")) / "demo-credentials.json"
MAX_TURNS = 60  # ends the call if the model loops

_OPENING = [
    "Hello, this is Ada Lovelace. I would like a follow-up with Doctor Bob Chen.",
    "December 10th, 1985, and the number is 555 010 0199.",
    "Yes, that time is fine.",
]
CALLERS = {
    "books": [*_OPENING, "Yes, please."],
    "declines": [*_OPENING, "No, wait. I have to ask my husband first."],
}


@dataclass(frozen=True, slots=True)
class Turn:
    """A spoken sentence, or the result of a tool as JSON."""

    who: Literal["caller", "agent", "tool"]
    text: str


@dataclass(frozen=True, slots=True)
class Say:
    text: str


@dataclass(frozen=True, slots=True)
class Call:
    tool: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class HangUp:
    text: str


class Model(Protocol):
    async def decide(self, conversation: Sequence[Turn], tools: Sequence[dict[str, Any]]) -> Say | Call | HangUp: ...


class ScriptedModel:
    """Follows a fixed script with the results of the tools."""

    def __init__(self) -> None:
        self._script = self._conversation()
        self._begun = False

    async def decide(self, conversation: Sequence[Turn], tools: Sequence[dict[str, Any]]) -> Say | Call | HangUp:  # noqa: ARG002
        if not self._begun:
            self._begun = True
            return next(self._script)
        last = conversation[-1]
        answer = json.loads(last.text) if last.who == "tool" else {}
        if "code" in answer:
            return HangUp("I am sorry, I cannot do that. Let me connect you to the practice.")
        return self._script.send(answer)

    def _conversation(self) -> Generator[Say | Call | HangUp, dict[str, Any], None]:
        yield Say("Harborside Medical Group, how can I help you?")
        yield Say("Gladly. May I have your date of birth and your phone number?")
        person = {"firstName": "Ada", "lastName": "Lovelace", "phone": "555 010 0199", "dob": "1985-12-10"}
        patient = yield Call("match_patient", person)
        visit = yield Call("list_visit_types", {"name": "follow-up"})
        visit_id = visit["items"][0]["id"]
        procedure = yield Call("list_procedures", {"visitTypeId": visit_id})
        provider = yield Call("list_providers", {"name": "Bob Chen"})
        wanted = {
            "visitTypeId": visit_id,
            "procedureId": procedure["items"][0]["id"],
            "providerId": provider["items"][0]["id"],
        }
        found = yield Call("find_first_available", {**wanted, "limit": 1})
        slot = yield Call("get_slot", {"slotId": found["items"][0]["id"]})
        yield Say(f"{slot['providerName']} is free on {spoken(slot['start'])}. Would that suit you?")
        booking = {"patientId": patient["items"][0]["id"], "slotId": slot["id"]}
        booked = yield Call("book_appointment", booking)
        if "appointmentId" in booked:
            yield HangUp("You are booked. Goodbye!")
        else:
            yield HangUp("Then I leave everything as it is. Goodbye!")


def spoken(start: str) -> str:
    """The local time of the location, as spoken text."""
    return datetime.fromisoformat(start).strftime("%A, %B %d, at %H:%M")


def is_clear_yes(text: str) -> bool:
    words = re.findall("[a-z']+", text.lower())
    return words[:1] in (["yes"], ["yeah"], ["correct"]) and not {"no", "not", "don't", "but", "wait"} & set(words)


def read_back(record: dict[str, Any]) -> str:
    """The proposed change in words, without ids."""
    if "start" in record:
        whose = f"{record['firstName']} {record['lastName']}, " if "lastName" in record else ""
        instead = f", instead of {spoken(record['rescheduledFrom'])}" if "rescheduledFrom" in record else ""
        return (
            f"Let me read that back: {whose}{record['visitTypeName']} with {record['providerName']}, "
            f"{record['locationName']}, {spoken(record['start'])}{instead}. Is that right?"
        )
    changes = ", ".join(
        f"{name} {'removed' if value is None else value}" for name, value in record.items() if not name.endswith("Id")
    )
    return f"Let me read that back: {changes}. Is that right?"


class Conversation:
    """The conversation so far; prints the spoken sentences."""

    def __init__(self, client: Client, hear: Callable[[], str]) -> None:
        self.turns: list[Turn] = []
        self._client = client
        self._hear = hear

    async def run(self, model: Model) -> None:
        try:
            await self._converse(model)
        except EOFError:  # the end of what is typed: the caller has hung up
            print()
            self._add("agent", "Goodbye!")

    async def _converse(self, model: Model) -> None:
        listed = await self._client.list_tools()
        tools = [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in listed.tools]
        for _ in range(MAX_TURNS):
            decision = await model.decide(tuple(self.turns), tools)
            if isinstance(decision, HangUp):
                self._add("agent", decision.text)
                return
            if isinstance(decision, Say):
                self._ask(decision.text)
            else:
                self._add("tool", json.dumps(await self._call(decision)))
        self._add("agent", "I am sorry, let me connect you to the practice. Goodbye!")

    async def _call(self, wanted: Call) -> dict[str, Any]:
        arguments = {name: value for name, value in wanted.arguments.items() if name.lower() != "confirmationtoken"}
        answer = await self._send(wanted.tool, arguments)
        if answer.get("code") != "confirmation_required":
            return answer
        if not is_clear_yes(self._ask(read_back(answer["readBack"]))):
            return {"declined": "The caller did not say yes. Nothing was changed."}
        return await self._send(wanted.tool, {**arguments, "confirmationToken": answer["confirmationToken"]})

    async def _send(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        print(f"        ({tool})")
        return dict((await self._client.call_tool(tool, arguments)).structured_content or {})

    def _ask(self, text: str) -> str:
        self._add("agent", text)
        heard = self._hear()
        self._add("caller", heard)
        return heard

    def _add(self, who: Literal["caller", "agent", "tool"], text: str) -> None:
        self.turns.append(Turn(who, text))
        if who != "tool":
            print(f"{who.capitalize() + ':':8}{text}")


async def main(arguments: argparse.Namespace) -> None:
    module, _, factory = arguments.model.partition(":")
    model: Model = getattr(import_module(module), factory)() if factory else ScriptedModel()
    lines: Iterator[str] = iter(CALLERS.get(arguments.caller, ()))
    agent = json.loads(CREDENTIALS.read_text())["agent"]
    form = {
        "grant_type": "client_credentials",
        "client_id": agent["clientId"],
        "client_secret": agent["clientSecret"],
    }
    async with httpx2.AsyncClient() as http:
        token = (await http.post(f"{URL}/oauth/token", data=form)).json()["access_token"]
        http.headers["Authorization"] = f"Bearer {token}"
        async with Client(streamable_http_client(f"{URL}/mcp", http_client=http)) as client:
            hear = (lambda: input("> ")) if arguments.caller == "typed" else (lambda: next(lines, "Goodbye."))
            await Conversation(client, hear).run(model)


if __name__ == "__main__":
    sys.path.insert(0, str(Path.cwd()))
    sys.modules["voice_agent"] = sys.modules["__main__"]  # a model that imports voice_agent gets these classes
    parser = argparse.ArgumentParser(description="A voice agent with a scripted model, or your own.")
    parser.add_argument("--caller", choices=[*CALLERS, "typed"], default="books")
    parser.add_argument("--model", default="scripted", metavar="MODULE:FACTORY", help="your own model")
    asyncio.run(main(parser.parse_args()))
