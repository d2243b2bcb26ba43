// Books an appointment with the types that openapi-typescript makes from the published document.

import createClient from "openapi-fetch";

import type { components, paths } from "./practice-api.js";

declare const process: { env: Record<string, string>; stdout: { write(text: string): void } };

function given<T>(answer: { data?: T; error?: { code: string; detail: string } }): T {
  if (answer.data === undefined) throw new Error(`${answer.error?.code}: ${answer.error?.detail}`);
  return answer.data;
}

const url = process.env.DESK_URL;
const form = new URLSearchParams({
  grant_type: "client_credentials",
  client_id: process.env.DESK_CLIENT_ID,
  client_secret: process.env.DESK_CLIENT_SECRET,
});
const token = (await (await fetch(`${url}/oauth/token`, { method: "POST", body: form })).json()).access_token as string;
const desk = createClient<paths>({ baseUrl: `${url}/api`, headers: { Authorization: `Bearer ${token}` } });

const ada = { firstName: "Ada", lastName: "Lovelace", phone: "555 010 0199", dob: "1985-12-10" };
const found = given(await desk.POST("/patients/match", { body: ada }));
if (found.items.length !== 1) throw new Error("Ada is one person");

const missing = await desk.GET("/patients/{patientId}", {
  params: { path: { patientId: "pat_0123456789ABCDEFGHIJKL" } },
});
if (missing.error?.code !== "not_found") throw new Error("nobody has this id");

const nextWeek = new Date(Date.now() + 7 * 86_400_000).toISOString().slice(0, 10); // the earliest of all may be too close
const query = { visitTypeId: 23, procedureId: 106, from: nextWeek };
const slots = given(await desk.GET("/slots/first-available", { params: { query } }));
const slot: components["schemas"]["Slot"] = slots.items[0]!;

const booking = { patientId: process.env.PATIENT_ID, slotId: slot.id };
const asked = await desk.POST("/appointments", { body: booking });
if (asked.error?.code !== "confirmation_required") throw new Error("an agent is asked first");
const challenge: components["schemas"]["Challenge"] = asked.error;

const confirmed = { ...booking, confirmationToken: challenge.confirmationToken };
const { appointmentId } = given(await desk.POST("/appointments", { body: confirmed }));
const appointment = given(await desk.GET("/appointments/{appointmentId}", { params: { path: { appointmentId } } }));
if (appointment.start !== slot.start) throw new Error("another time was booked");
process.stdout.write(`${appointmentId}\n`);
