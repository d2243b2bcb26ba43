"""Calendar feeds of a practice: listed, added with busy times only, and revoked.

Feeds with names of patients are added on the command line, because their address is all that protects the names.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from frontdesk.desk.context import ActionContext
from frontdesk.desk.form_uses import recorder_once
from frontdesk.domain.directory import Provider
from frontdesk.domain.errors import Problem
from frontdesk.features.calendar_feeds.actions import ADD, REVOKE
from frontdesk.features.calendar_feeds.feeds import Feed, add_feed, list_feeds, revoke_feed
from frontdesk.store.database import Database
from frontdesk.store.directories import load_directory


@dataclass(frozen=True, slots=True)
class FeedView:
    feed: Feed
    provider: str


@dataclass(frozen=True, slots=True)
class Feeds:
    database: Database

    async def all(self, context: ActionContext) -> tuple[Sequence[FeedView], Sequence[Provider]]:
        """The feeds that work, and the providers that can have one."""
        context.require("admin")
        providers = (await load_directory(self.database, context.practice_id)).directory.providers
        feeds = await list_feeds(self.database, context.practice_id)
        shown = [FeedView(feed, providers[feed.provider_id].name) for feed in feeds if feed.revoked_at is None]
        return shown, [provider for provider in providers.values() if provider.active]

    async def add(self, context: ActionContext, provider_id: int, *, once: str) -> str:
        """The path of the new feed, which cannot be shown again. Raises SecretShown if the form was sent before."""
        context.require("admin")
        directory = (await load_directory(self.database, context.practice_id)).directory
        provider = directory.providers.get(provider_id)
        if provider is None or not provider.active:
            raise Problem("not_found", "There is no such provider.")
        recorder = recorder_once(context, ADD.name, once)
        _, path = await add_feed(
            self.database,
            context.practice_id,
            directory,
            provider_id,
            with_names=False,
            now=context.now,
            recorder=recorder,
        )
        context.seal_soon()
        return path

    async def revoke(self, context: ActionContext, feed_id: str) -> None:
        context.require("admin")
        if feed_id not in [feed.feed_id for feed in await list_feeds(self.database, context.practice_id)]:
            raise Problem("not_found", "There is no such calendar feed.")
        recorder = context.audit.recorder(REVOKE.name)
        await revoke_feed(self.database, feed_id, context.now, recorder=recorder)
        context.seal_soon()
