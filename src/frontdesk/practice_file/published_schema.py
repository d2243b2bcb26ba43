"""The JSON Schema of the practice file as a file of this package, which the service publishes for editors."""

from importlib.resources import files

SCHEMA_PATH = "/schemas/practice-file.json"  # at the service
SCHEMA_FILE = "practice-file.schema.json"


def schema_text() -> str:
    return (files("frontdesk.practice_file") / SCHEMA_FILE).read_text(encoding="utf-8")


def schema_line(public_url: str) -> str:
    """The first line of a YAML file, by which editors find the schema."""
    return f"# yaml-language-server: $schema={public_url}{SCHEMA_PATH}\n"
