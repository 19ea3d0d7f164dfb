"""Serves the page of this directory, and gets it tickets for Weir's gateway. Python 3.9, standard library only.

    WEIR_TOKEN=$(cat app.token) python3 serve.py --gateway http://127.0.0.1:7410 --peer app:demo

The token stays here: a page could not keep it. A ticket lets one connection in, from this page, within 30 seconds.
Put your own question before `ask`, as whether the person has logged in. As it is, every program that reaches this port
gets tickets, so it listens on this machine alone.
"""

import argparse
import http.server
import json
import os
import pathlib
import urllib.error
import urllib.request

HERE = pathlib.Path(__file__).parent
FILES = {
    "/": (HERE / "index.html", "text/html; charset=utf-8"),
    "/app.js": (HERE / "app.js", "text/javascript"),
    "/weir.js": (HERE / "../../outside/gateway/client/weir.js", "text/javascript"),
}

arguments = argparse.ArgumentParser()
arguments.add_argument("--gateway", default="http://127.0.0.1:7410")
arguments.add_argument("--peer", default="app:demo")
arguments.add_argument("--port", type=int, default=8080)
arguments = arguments.parse_args()
TOKEN = os.environ["WEIR_TOKEN"]
ORIGIN = f"http://127.0.0.1:{arguments.port}"


def ask():
    """The status and the body of the gateway's answer."""
    request = urllib.request.Request(
        f"{arguments.gateway}/v1/peers/{arguments.peer}/tickets",
        data=json.dumps({"origin": ORIGIN}).encode(),
        headers={"authorization": f"Bearer {TOKEN}", "content-type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as refusal:
        return refusal.code, refusal.read()
    except OSError as error:
        return 503, json.dumps({"error": {"code": "unreachable", "message": str(error)}}).encode()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/gateway":
            where = {"url": arguments.gateway.replace("http", "ws", 1), "peer": arguments.peer}
            self.answer(200, json.dumps(where).encode())
        elif self.path in FILES:
            path, kind = FILES[self.path]
            self.answer(200, path.read_bytes(), kind)
        else:
            self.answer(404, b"{}")

    def do_POST(self):
        # Browsers say which page asks. No other page has any business here.
        if self.path == "/ticket" and self.headers["origin"] == ORIGIN:
            self.answer(*ask())
        else:
            self.answer(404, b"{}")

    def answer(self, status, body, kind="application/json"):
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.send_header("cache-control", "no-store")
        self.end_headers()
        self.wfile.write(body)


print(f"open {ORIGIN}")
http.server.ThreadingHTTPServer(("127.0.0.1", arguments.port), Handler).serve_forever()
