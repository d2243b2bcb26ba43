"""An engine whose calls are spans."""

from dataclasses import replace

from frontdesk.engine.answer_cache import Answer
from frontdesk.engine.execute import Call
from frontdesk.engine.sandbox import SimulatingEngine
from frontdesk.tracing import Tracing


def traced_engine(tracing: Tracing) -> type[SimulatingEngine]:
    class TracedEngine(SimulatingEngine):
        async def execute(self, call: Call) -> Answer:
            name = call.operation.name
            with tracing.continuing(f"execute {name}", {}, {"frontdesk.operation": name}):
                return await super().execute(replace(call, traceparent=tracing.headers().get("traceparent")))

    return TracedEngine
