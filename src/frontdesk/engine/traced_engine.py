"""An engine whose calls are spans."""

from dataclasses import replace

from frontdesk.engine.answer_cache import Answer
from frontdesk.engine.execute import Call, Engine
from frontdesk.tracing import Tracing


def traced_engine(tracing: Tracing) -> type[Engine]:
    class TracedEngine(Engine):
        async def execute(self, call: Call) -> Answer:
            name = call.operation.name
            with tracing.continuing(f"execute {name}", {}, {"frontdesk.operation": name}):
                return await super().execute(replace(call, traceparent=tracing.headers().get("traceparent")))

    return TracedEngine
