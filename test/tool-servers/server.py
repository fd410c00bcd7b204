"""A server made with the Python package `mcp`, of both of its major versions.

python server.py PORT TRANSPORT STATELESS JSON
"""

import json as json_format
import sys

port, transport, stateless, json = int(sys.argv[1]), sys.argv[2], sys.argv[3] == "yes", sys.argv[4] == "yes"
try:
    from mcp.server.mcpserver import MCPServer, Context, Image

    is_old = False
except ImportError:
    from mcp.server.fastmcp import FastMCP as MCPServer, Context, Image

    is_old = True

options = {"host": "127.0.0.1", "port": port}
if transport == "streamable-http":
    options |= {"stateless_http": stateless, "json_response": json}
server = MCPServer("orders", **(options if is_old else {}))


@server.tool()
def find(id: str, limit: int = 3) -> dict:
    """Finds orders."""
    return {"id": id, "limit": limit}


@server.tool()
def fail() -> str:
    """Fails."""
    raise ValueError("no such order")


@server.tool()
def picture() -> Image:
    """Draws."""
    return Image(data=b"123", format="png")


@server.tool()
def caller(ctx: Context) -> str:
    """Tells who calls."""
    meta = ctx.request_context.meta
    return json_format.dumps(meta.model_extra if is_old and meta else meta)


@server.tool()
async def slow(ctx: Context) -> str:
    """Reports its progress."""
    await ctx.report_progress(1, 2)
    if is_old:
        await ctx.info("working")
    return "done"


server.run(transport=transport, **({} if is_old else options))
