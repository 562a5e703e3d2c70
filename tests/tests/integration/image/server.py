"""An MCP server over standard input and output, with one tool. It needs only Python."""

import json
import os
import sys

TOOL = {
    "name": "runtime",
    "description": "What the server runs on.",
    "inputSchema": {"type": "object", "properties": {}},
    "annotations": {"readOnlyHint": True},
}


def answer(method, params):
    if method == "initialize":
        server = {"name": "python", "version": "1"}
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": server}
    if method == "tools/list":
        return {"tools": [TOOL]}
    return {"content": [{"type": "text", "text": f"python runs as user {os.getuid()}"}]}


for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked:
        result = answer(asked["method"], asked.get("params"))
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
