"""What all parts of the practice file share, and the part of a feature."""

from functools import cache

from pydantic import BaseModel, ConfigDict, model_validator
from pydantic.alias_generators import to_camel

from frontdesk.practice_file.fields import key


class Part(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, alias_generator=to_camel)

    @classmethod
    @cache
    def keys(cls) -> tuple[str, ...]:
        return tuple(field.alias or name for name, field in cls.model_fields.items())

    @model_validator(mode="before")
    @classmethod
    def _null_is_absent(cls, part: object) -> object:
        if not isinstance(part, dict):
            return part
        keys = cls.keys()
        return {key: value for key, value in part.items() if value is not None or key not in keys}


class FeaturePart(Part):
    """A feature without settings. One that has any derives its part from this."""

    # Values of settings are plain JSON. Their descriptions, marked for translation, are their labels in the console.
    enabled: bool = key("Whether the practice uses it.", False, True)
