"""The list of lost items."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from frontdesk.audit.sentences import Action, AuditSentence
from frontdesk.desk.context import ActionContext
from frontdesk.domain.errors import FieldError, invalid
from frontdesk.feature import features
from frontdesk.outbound.webhooks.events import add_event
from frontdesk.store.database import Database
from frontdesk.store.directories import load_directory
from frontdesk.store.practices import practices_that_use
from frontdesk.store.rows import from_row
from frontdesk.texts import Text

ADD = Action("console.add_lost_item", "Write down a lost item", AuditSentence("%(actor)s wrote down a lost item"))


@dataclass(frozen=True, slots=True)
class LostItem:
    item_id: str
    what: str
    found_at: datetime


@dataclass(slots=True)
class LostItems:
    database: Database
    clock: Callable[[], datetime]
    added: int = 0

    async def of(self, practice_id: int) -> list[LostItem]:
        select = "SELECT item_id, what, found_at FROM lost_item WHERE practice_id = $1 ORDER BY found_at"
        async with self.database.transaction(practice_id) as connection:
            return [from_row(LostItem, row) for row in await connection.fetch(select, practice_id)]

    async def add(self, context: ActionContext, what: str, key: str) -> None:
        if not what.strip():
            raise invalid([FieldError("what", "notBlank", Text("%(field)s must not be blank"))])
        insert = "INSERT INTO lost_item VALUES ($1, $2, $3, $4)"
        async with self.database.transaction(context.practice_id) as connection:
            await connection.execute(insert, context.practice_id, key, what, context.now)
            await add_event(connection, context.practice_id, "lostItem.found", {"itemId": key}, context.now)
            await context.record_in(connection, ADD.name)
        self.added += 1
        context.seal_soon()

    async def prune(self) -> None:
        """Removes what was kept for as long as the practice wants."""
        (feature,) = (each for each in features() if each.name == "lost_property")
        for practice_id in await practices_that_use(self.database, feature):
            stored = await load_directory(self.database, practice_id)
            set_days = stored.directory.practice.features.get(feature.name, {}).get("keep_days", 90)
            assert isinstance(set_days, int)
            before = self.clock() - timedelta(days=set_days)
            async with self.database.transaction(practice_id) as connection:
                delete = "DELETE FROM lost_item WHERE practice_id = $1 AND found_at < $2"
                await connection.execute(delete, practice_id, before)
