"""The official Python SDK as a client that a test drives: a JSON object a line in, one a line out."""

import json
import sys

import anyio
from mcp import Client, MCPError, StdioServerParameters, stdio_client


def say(answer):
    print(json.dumps(answer), flush=True)


async def answer(client, asked):
    if "call" in asked:
        return await client.call_tool(asked["call"], asked["arguments"])
    return await client.list_tools()


async def main():
    how = json.loads(sys.argv[1])
    target = how.get("http")
    if target is None:
        command, *args = how["stdio"]
        target = stdio_client(StdioServerParameters(command=command, args=args))
    async with Client(target, mode=how["mode"]) as client:
        say({"protocol": client.protocol_version, "instructions": client.instructions})
        while line := await anyio.to_thread.run_sync(sys.stdin.readline):
            try:
                result = await answer(client, json.loads(line))
                say(result.model_dump(by_alias=True, mode="json", exclude_none=True))
            except MCPError as error:
                say({"refused": str(error)})


anyio.run(main)
