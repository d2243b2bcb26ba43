"""Switches features of a practice on and off."""

from dataclasses import replace

from frontdesk.feature import StoredFeatures
from frontdesk.practice_file import PracticeFile, dump, parse
from frontdesk.store.practices import export_practice
from tests.support.world import World


async def stored_file(world: World) -> PracticeFile:
    file = await export_practice(world.database, "harbor", with_patients=False)
    assert file is not None
    assert parse(dump(file)).directory.practice.features == file.directory.practice.features
    return file


async def switch(world: World, features: StoredFeatures) -> None:
    file = await stored_file(world)
    practice = replace(file.directory.practice, features=features)
    await world.import_file(dump(replace(file, directory=replace(file.directory, practice=practice))))
