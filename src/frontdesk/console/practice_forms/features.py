"""The features of a practice in its forms: whether each is used, and its settings."""

from collections.abc import Iterator
from typing import Literal, get_args, get_origin

from pydantic.alias_generators import to_camel
from pydantic.fields import FieldInfo

from frontdesk.console.language import gettext as _
from frontdesk.console.practice_forms.fields import Field, Kind
from frontdesk.domain.directory import Practice
from frontdesk.feature import Feature, features

_ENABLED = "enabled"


def switches() -> tuple[Field, ...]:
    """Whether each feature is used."""
    return tuple(
        Field(f"features.{to_camel(each.name)}.{_ENABLED}", each.title, "yes_no", each.about, default=True)
        for each in features()
    )


def settings_of(feature: Feature) -> tuple[Field, ...]:
    """The settings besides; the description in the practice file is the label."""
    return tuple(
        Field(
            f"features.{to_camel(feature.name)}.{field.alias}",
            _label(field),
            _kind(field),
            choices=[(each, each) for each in get_args(field.annotation)],
            default=field.default,
        )
        for _name, field in _settings(feature)
    )


def _settings(feature: Feature) -> list[tuple[str, FieldInfo]]:
    fields = {} if feature.settings is None else feature.settings.model_fields
    return [(name, field) for name, field in fields.items() if name != _ENABLED]


def _label(field: FieldInfo) -> str:
    assert field.description is not None, "every key of the practice file has one"
    return field.description


def _kind(field: FieldInfo) -> Kind:
    if get_origin(field.annotation) is Literal:
        return "choice"
    return "yes_no" if field.annotation is bool else "number" if field.annotation is int else "text"


def set_features(practice: Practice) -> Iterator[tuple[str, object]]:
    """Label and value of what a practice has set of its features."""
    for feature in features():
        stored = practice.features.get(feature.name, {})
        yield _(feature.title), feature.is_enabled(practice.features)
        for name, field in _settings(feature):
            yield _(_label(field)), stored.get(name, field.default)
