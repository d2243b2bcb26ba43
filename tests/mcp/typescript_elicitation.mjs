// A host on the TypeScript SDK, older or newer line, whose user first declines a write and then agrees to it.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [modules, line, url, token, firstName] = process.argv.slice(2);
const resolve = createRequire(`${modules}/`).resolve;
const load = async (name) => import(pathToFileURL(resolve(name)));
const newer = line !== "1";
const { Client, StreamableHTTPClientTransport } = newer
  ? await load("@modelcontextprotocol/client")
  : Object.assign(
      {},
      await load("@modelcontextprotocol/sdk/client/index.js"),
      await load("@modelcontextprotocol/sdk/client/streamableHttp.js"),
    );
const ELICIT = newer ? "elicitation/create" : (await load("@modelcontextprotocol/sdk/types.js")).ElicitRequestSchema;

const answers = [{ action: "decline" }, { action: "accept", content: { confirm: true } }];
const asked = [];
const mode = line === "2 modern" ? { versionNegotiation: { mode: { pin: "2026-07-28" } } } : {};
const client = new Client({ name: "frontdesk-test", version: "1.0.0" }, { capabilities: { elicitation: {} }, ...mode });
client.setRequestHandler(ELICIT, async (request) => {
  asked.push(request.params.message);
  return answers.shift();
});
const requestInit = { headers: { Authorization: `Bearer ${token}` } };
await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit }));
const patient = { firstName, lastName: "Hopper", phone: "+1 555 010 0500", dob: "1906-12-09" };
const refused = await client.callTool({ name: "create_patient", arguments: patient });
const done = await client.callTool({ name: "create_patient", arguments: patient });
console.log(JSON.stringify({ asked, refused, done }));
await client.close();
