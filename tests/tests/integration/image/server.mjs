// An MCP server over standard input and output, with one tool. It needs only Node.

import { createInterface } from "node:readline";

const tool = {
  name: "runtime",
  description: "What the server runs on.",
  inputSchema: { type: "object", properties: {} },
  annotations: { readOnlyHint: true },
};

function answer(method, params) {
  if (method === "initialize") {
    const serverInfo = { name: "node", version: "1" };
    return { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo };
  }
  if (method === "tools/list") return { tools: [tool] };
  return { content: [{ type: "text", text: `node runs as user ${process.getuid()}` }] };
}

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line);
  if (id !== undefined) console.log(JSON.stringify({ jsonrpc: "2.0", id, result: answer(method, params) }));
}
