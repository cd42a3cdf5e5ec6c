"""Opens pages in one headless Chromium, a tab each, over the DevTools protocol, and says what its console told."""

from __future__ import annotations

import asyncio
import itertools
import json
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

SECONDS = 300
"""Only a page that lacks its text is waited for so long."""

RELOAD_SECONDS = 30
"""A page of Dagster that was opened before something was there does not always show it without being opened anew."""

SETTLE_SECONDS = 1.0
"""What a page says in its console after its text was there, but late."""

_HTML = "document.documentElement.outerHTML"

FLAGS = (
    "headless",
    "no-sandbox",
    "disable-gpu",
    "disable-quic",
    "no-first-run",
    "disable-background-networking",
    "disable-sync",
    "remote-debugging-port=0",
)


@dataclass
class Opened:
    """A page: its HTML once its text stood there, or when waiting ended, and the errors in its console."""

    html: str = ""
    errors: list[str] = field(default_factory=list[str])


def open_pages(chromium: str, profile: Path, texts: Mapping[str, str]) -> dict[str, Opened]:
    """Open each address until its text stands on the page."""
    command = [chromium, *(f"--{flag}" for flag in FLAGS), f"--user-data-dir={profile}", "about:blank"]
    with (profile.parent / f"{profile.name}.log").open("wb") as log, subprocess.Popen(command, stderr=log) as process:
        try:
            return asyncio.run(_open_all(_address(profile, process), texts))
        finally:
            process.kill()


def _address(profile: Path, process: subprocess.Popen[bytes]) -> str:
    told = profile / "DevToolsActivePort"
    until = time.monotonic() + SECONDS
    while time.monotonic() < until and process.poll() is None:
        lines = told.read_text().splitlines() if told.exists() else []
        if len(lines) == 2:
            return f"ws://127.0.0.1:{lines[0]}{lines[1]}"
        time.sleep(0.1)
    raise AssertionError("Chromium did not start")


async def _open_all(address: str, texts: Mapping[str, str]) -> dict[str, Opened]:
    async with aiohttp.ClientSession() as http, http.ws_connect(address, max_msg_size=0) as socket:
        browser = _Browser(socket)
        listening = asyncio.create_task(browser.listen())
        opened = await asyncio.gather(*(browser.open(url, text) for url, text in texts.items()))
        listening.cancel()
    return dict(zip(texts, opened, strict=True))


class _RefusedError(Exception):
    """What Chromium says to a command that it cannot carry out."""


class _Browser:
    """Commands over one socket, and what the tabs' consoles say."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._pages: dict[str, Opened] = {}

    async def listen(self) -> None:
        async for message in self._socket:
            content = message.json()
            if "id" in content:
                self._waiting.pop(content["id"]).set_result(content)
            elif page := self._pages.get(content.get("sessionId", "")):
                page.errors.extend(_errors(content["method"], content["params"]))

    async def open(self, url: str, text: str) -> Opened:
        target = (await self._do("Target.createTarget", url="about:blank"))["targetId"]
        tab = (await self._do("Target.attachToTarget", targetId=target, flatten=True))["sessionId"]
        page = self._pages[tab] = Opened()
        for domain in ("Page", "Runtime", "Log"):
            await self._do(f"{domain}.enable", tab)
        await self._do("Page.navigate", tab, url=url)
        said = time.monotonic()
        until = said + SECONDS
        while not await self._eval(tab, f"{_HTML}.includes({json.dumps(text)})") and time.monotonic() < until:
            await asyncio.sleep(0.3)
            if time.monotonic() > said + RELOAD_SECONDS:
                await self._do("Page.reload", tab)
                said = time.monotonic()
        await asyncio.sleep(SETTLE_SECONDS)
        page.html = str(await self._eval(tab, _HTML))
        return page

    async def _eval(self, tab: str, expression: str) -> Any:
        """The value of an expression; None where the page is just being replaced."""
        try:
            return (await self._do("Runtime.evaluate", tab, expression=expression))["result"].get("value")
        except _RefusedError:
            return None

    async def _do(self, method: str, tab: str | None = None, **params: Any) -> Any:
        number = next(self._numbers)
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        where = {} if tab is None else {"sessionId": tab}
        await self._socket.send_json({"id": number, "method": method, "params": params, **where})
        content = await asyncio.wait_for(answer, SECONDS)
        if "error" in content:
            raise _RefusedError(f"{method}: {content['error']}")
        return content["result"]


def _errors(method: str, params: Mapping[str, Any]) -> list[str]:
    if method == "Runtime.exceptionThrown":
        return [str(params["exceptionDetails"])]
    if method == "Runtime.consoleAPICalled" and params["type"] in ("error", "assert"):
        return [str([argument.get("value", argument.get("description")) for argument in params["args"]])]
    if method == "Log.entryAdded" and params["entry"]["level"] == "error":
        return [f"{params['entry']['text']} {params['entry'].get('url', '')}"]
    return []
