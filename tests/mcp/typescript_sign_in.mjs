// Signs in with the TypeScript SDK, older or newer line: registers, shows an address, waits for the answer, calls tools.
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [modules, line, url] = process.argv.slice(2);
const resolve = createRequire(`${modules}/`).resolve;
const load = async (name) => import(pathToFileURL(resolve(name)));
const { Client, StreamableHTTPClientTransport, UnauthorizedError } =
  line === "2"
    ? await load("@modelcontextprotocol/client")
    : Object.assign(
        {},
        await load("@modelcontextprotocol/sdk/client/index.js"),
        await load("@modelcontextprotocol/sdk/client/streamableHttp.js"),
        await load("@modelcontextprotocol/sdk/client/auth.js"),
      );

let answered;
const answer = new Promise((done) => (answered = done));
const server = createServer((request, response) => {
  response.end("done");
  answered(new URL(request.url, "http://127.0.0.1").searchParams);
});
await new Promise((done) => server.listen(0, "127.0.0.1", done));
const redirectUrl = `http://127.0.0.1:${server.address().port}/callback`;

const kept = {};
const provider = {
  redirectUrl,
  clientMetadata: { client_name: `TypeScript ${line}`, redirect_uris: [redirectUrl], token_endpoint_auth_method: "none" },
  state: () => "a-state",
  clientInformation: () => kept.client,
  saveClientInformation: (client) => { kept.client = client; },
  tokens: () => kept.tokens,
  saveTokens: (tokens) => { kept.tokens = tokens; },
  redirectToAuthorization: (address) => console.log(`${address}`),
  saveCodeVerifier: (verifier) => { kept.verifier = verifier; },
  codeVerifier: () => kept.verifier,
  saveDiscoveryState: (state) => { kept.discovery = state; },
  discoveryState: () => kept.discovery,
};

const client = new Client({ name: "frontdesk-test", version: "1.0.0" });
const first = new StreamableHTTPClientTransport(new URL(url), { authProvider: provider });
try {
  await client.connect(first);
  throw new Error("connected without signing in");
} catch (error) {
  if (!(error instanceof UnauthorizedError)) throw error;
}
const parameters = await answer;
if (parameters.get("state") !== "a-state") throw new Error("another state");
await (line === "2" ? first.finishAuth(parameters) : first.finishAuth(parameters.get("code")));
await client.connect(new StreamableHTTPClientTransport(new URL(url), { authProvider: provider }));
const { tools } = await client.listTools();
const practice = await client.callTool({ name: "get_practice", arguments: {} });
console.log(`RESULT ${JSON.stringify({ tools: tools.map((tool) => tool.name), practice: practice.structuredContent })}`);
await client.close();
server.close();
