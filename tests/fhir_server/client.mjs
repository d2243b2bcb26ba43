// Medplum's client against our FHIR server: base address, token and a date as arguments, what it saw as JSON.

import { MedplumClient } from '@medplum/core';

const [baseUrl, token, day] = process.argv.slice(2);
const client = new MedplumClient({ baseUrl, fhirUrlPath: 'fhir/R4', fetch });
client.setAccessToken(token);

const statement = await client.get(client.fhirUrl('metadata'));
const [schedule] = await client.searchResources('Schedule', { actor: 'Practitioner/10' });
const [service] = await client.searchResources('HealthcareService', { 'service-type': '102' });
const slots = await client.searchResources('Slot', [
  ['schedule', `Schedule/${schedule.id}`],
  ['service-type', `${service.type[1].coding[0].system}|${service.type[1].coding[0].code}`],
  ['start', `ge${day}`],
]);
const slot = await client.readResource('Slot', slots[0].id);
const pages = [];
for await (const page of client.searchResourcePages('Appointment', { date: `ge${day}`, _count: 10 })) {
  pages.push(page.length);
  if (pages.length === 3) {
    break;
  }
}
const [found] = await client.searchResources('Appointment', { date: `ge${day}`, _include: 'Appointment:patient' });
const appointment = await client.readResource('Appointment', found.id);
const patient = await client.readReference(appointment.participant[0].actor);
const refused = await client.search('Patient', { family: 'Smith' }).catch((error) => error.outcome);
console.log(
  JSON.stringify({
    version: statement.fhirVersion,
    slot: slot.status,
    pages,
    appointment: appointment.resourceType,
    patient: patient.resourceType,
    refused: refused.issue[0].details.coding[0].code,
  })
);
