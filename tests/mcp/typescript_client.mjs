// A few calls with the TypeScript SDK's client of the older line, which holds errors, too, to a tool's outputSchema.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [modules, url, token] = process.argv.slice(2);
const load = async (name) => import(pathToFileURL(createRequire(`${modules}/`).resolve(name)));
const { Client } = await load("@modelcontextprotocol/sdk/client/index.js");
const { StreamableHTTPClientTransport } = await load("@modelcontextprotocol/sdk/client/streamableHttp.js");

const client = new Client({ name: "frontdesk-test", version: "1.0.0" });
const requestInit = { headers: { Authorization: `Bearer ${token}` } };
await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit }));
const { tools } = await client.listTools();
const patient = { firstName: "Ada", lastName: "Lovelace", phone: "+1 555 010 0500", dob: "1985-12-10" };
const missing = await client.callTool({ name: "match_patient", arguments: patient });
const gone = await client.callTool({ name: "get_appointment", arguments: { appointmentId: "apt_0000000000000000000000" } });
const proposed = await client.callTool({ name: "create_patient", arguments: patient });
const { confirmationToken } = proposed.structuredContent;
const done = await client.callTool({ name: "create_patient", arguments: { ...patient, confirmationToken } });
console.log(JSON.stringify({ tools: tools.map((tool) => tool.name), missing, gone, proposed, done }));
await client.close();
