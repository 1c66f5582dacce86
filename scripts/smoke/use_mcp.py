"""A study for agents, with the client of the same package."""

from __future__ import annotations

import anyio
from common import COMMAND, a_study
from mcp import Client, StdioServerParameters, stdio_client

server = StdioServerParameters(command=str(COMMAND), args=["mcp", str(a_study())])


async def ask() -> None:
    async with Client(stdio_client(server)) as client:
        found = await client.call_tool("runs", {"study": "coating"})
        assert found.structured_content is not None
        assert [run["value"] for run in found.structured_content["result"]] == [2.5, 1e-300, 1 / 3]


anyio.run(ask)
