"""Fetches the URL in its first argument, and prints the body."""

import asyncio
import sys
from urllib.parse import urlsplit

import poll_loop
from poll_loop import PollLoop, Stream
from wit_world import exports
from wit_world.imports import environment
from wit_world.imports.types import Fields, OutgoingRequest, Scheme_Http, Scheme_Https


async def fetch(url: str) -> bytes:
    parts = urlsplit(url)
    request = OutgoingRequest(Fields.from_list([]))
    request.set_scheme(Scheme_Https() if parts.scheme == "https" else Scheme_Http())
    request.set_authority(parts.netloc)
    request.set_path_with_query(parts.path)
    response = await poll_loop.send(request)
    stream, body = Stream(response.consume()), b""
    while (chunk := await stream.next()) is not None:
        body += chunk
    return body


class Run(exports.Run):
    def run(self) -> None:
        loop = PollLoop()
        asyncio.set_event_loop(loop)
        body = loop.run_until_complete(fetch(environment.get_arguments()[1]))
        sys.stdout.write(body.decode())
        sys.stdout.flush()
