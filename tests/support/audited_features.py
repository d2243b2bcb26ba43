"""What a feature's tests say of its audit records, in `audited.py` beside them."""

import importlib
import importlib.util
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class Audited:
    quiet_actions: Collection[str] = ()  # that leave no record
    recorded_by: Mapping[str, str] = field(default_factory=dict)  # of an action that calls another one, which leaves it
    forms: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # that its pages act on, by path


def audited(feature: str) -> Audited:
    name = f"tests.features.{feature}.audited"
    if importlib.util.find_spec(name) is None:
        return Audited()
    found: Audited = importlib.import_module(name).AUDITED
    return found
