"""Lines and columns of values in the text of a practice file, which are looked up only when it has errors."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

import yaml

from frontdesk.practice_file.errors import Steps

Position = tuple[int, int]  # line and column, from 1


class Positions:
    """The keys and list items on the way to the wanted values."""

    def __init__(self, text: str, wanted: Iterable[Steps]) -> None:
        self._wanted = {steps[:length] for steps in wanted for length in range(len(steps) + 1)}
        self._found: dict[Steps, list[Position]] = defaultdict(list)
        events = yaml.parse(text.removeprefix("\ufeff"), Loader=yaml.CSafeLoader)
        try:
            for event in events:
                if isinstance(event, yaml.DocumentStartEvent):
                    self._value(next(events), events, ())
        except yaml.YAMLError:
            pass  # JSON that is no YAML, such as JSON indented by tabs

    def of(self, steps: Steps, *, last: bool = False) -> Position | None:
        """The position of the value or, if the text does not have it, of the innermost value around it.

        `last`: that of the last occurrence if the key is repeated.
        """
        for length in range(len(steps), -1, -1):
            if found := self._found.get(steps[:length]):
                return found[-1 if last else 0]
        return None

    def _value(self, event: object, events: Iterator[Any], steps: Steps) -> None:  # the library has no types
        if not steps or isinstance(steps[-1], int):
            self._note(event, steps)
        if isinstance(event, yaml.SequenceStartEvent):
            index = 0
            while not isinstance(item := next(events), yaml.SequenceEndEvent):
                self._value(item, events, (*steps, index))
                index += 1
        elif isinstance(event, yaml.MappingStartEvent):
            while not isinstance(key := next(events), yaml.MappingEndEvent):
                self._note(key, (*steps, key.value))
                self._value(next(events), events, (*steps, key.value))

    def _note(self, event: Any, steps: Steps) -> None:  # as above
        if steps in self._wanted:
            self._found[steps].append((event.start_mark.line + 1, event.start_mark.column + 1))
