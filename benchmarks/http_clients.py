"""Which HTTP client costs least, measured in one run: `python benchmarks/http_clients.py` (docs/adr/0010-aiohttp.md).

Both clients post the same 3,000 requests to the same server on loopback, 32 at a time; the server runs in a process of
its own and answers at once with a body of a usual size.
"""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator

REQUESTS, CONCURRENCY = 3000, 32
BODY = b'{"question":"When does the ferry run?"}'
HEADERS = {"content-type": "application/json"}

SERVER = """
import sys, uvicorn

ANSWER = b'{"answer":"On Mondays.","passages":[' + b",".join([b'{"id":"p","text":"' + b"x" * 500 + b'"}'] * 5) + b"]}"


async def app(scope, receive, send):
    while (await receive()).get("more_body"):
        pass
    size = str(len(ANSWER)).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", size)]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": ANSWER})


uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="critical", access_log=False, lifespan="off")
"""

Ask = Callable[[], Awaitable[int]]


async def with_aiohttp(url: str) -> None:
    """Measure aiohttp."""
    import aiohttp

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=CONCURRENCY)) as session:

        async def ask() -> int:
            async with session.post(url, data=BODY, headers=HEADERS) as response:
                await response.read()
                return response.status

        await measure("aiohttp", ask)


async def with_httpx(url: str) -> None:
    """Measure httpx."""
    import httpx

    limits = httpx.Limits(max_connections=CONCURRENCY, max_keepalive_connections=CONCURRENCY)
    async with httpx.AsyncClient(limits=limits) as client:

        async def ask() -> int:
            return (await client.post(url, content=BODY, headers=HEADERS)).status_code

        await measure("httpx", ask)


async def measure(name: str, ask: Ask) -> None:
    """Warm up, then print requests per second and processor time per request."""

    async def work(places: Iterator[int]) -> None:
        for _ in places:
            assert await ask() == 200

    await asyncio.gather(*[work(iter(range(3))) for _ in range(CONCURRENCY)])
    places = iter(range(REQUESTS))
    wall, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*[work(places) for _ in range(CONCURRENCY)])
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    print(f"{name:8} {REQUESTS / wall:6.0f} requests/s  {cpu / REQUESTS * 1e6:5.0f} us of processor time per request")


def main() -> None:
    """Measure both, three times in turn."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with subprocess.Popen([sys.executable, "-c", SERVER, str(port)]) as server:
        try:
            for _ in range(200):
                with socket.socket() as waiting:
                    if waiting.connect_ex(("127.0.0.1", port)) == 0:
                        break
                time.sleep(0.05)
            for _ in range(3):
                for client in (with_aiohttp, with_httpx):
                    asyncio.run(client(f"http://127.0.0.1:{port}/query"))
        finally:
            server.terminate()


if __name__ == "__main__":
    main()
