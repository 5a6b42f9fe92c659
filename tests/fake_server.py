"""Fake servers of the OpenAI chat API on loopback, and runs against them."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from localsim.backends.endpoint import Patience
from localsim.conversation.scenario import LoadedScenario
from localsim.runs import runner
from localsim.runs.plan import Plan
from localsim.store.database import Store
from tests.conftest import Quiet

QUICK = Patience(timeout_s=0.6, attempts=3, pause_s=0.01)
Behave = Callable[[BaseHTTPRequestHandler, dict[str, Any], int], None]


class Server:
    """A fake server: `behave(handler, body, n)` answers the n-th chat request."""

    def __init__(self, behave: Behave, owner: str = "someone") -> None:
        outer = self
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self._lock = threading.Lock()

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                answer(self, {"data": [{"id": "m", "owned_by": owner}]})

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with outer._lock:
                    outer.bodies.append(body)
                    outer.headers.append(dict(self.headers))
                    number = len(outer.bodies)
                behave(self, body, number)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.name = f"openai:http://127.0.0.1:{self._server.server_port}/v1#m"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def send(handler: BaseHTTPRequestHandler, content: bytes, status: int = 200, **headers: str) -> None:
    handler.send_response(status)
    for key, value in ({"Content-Length": str(len(content)), "Content-Type": "application/json"} | headers).items():
        handler.send_header(key.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(content)


def answer(handler: BaseHTTPRequestHandler, data: Any, status: int = 200) -> None:
    send(handler, json.dumps(data).encode(), status)


def chat(text: str, **more: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": text}
    return {"choices": [{"message": message, "finish_reason": "stop"}], "usage": {"completion_tokens": 5}, **more}


def speak(handler: BaseHTTPRequestHandler, _body: dict[str, Any], number: int) -> None:
    answer(handler, chat(f"I say number {number}."))


def simulate(server: Server, talk: LoadedScenario, store: Store, episodes: int = 3, turns: int = 4) -> list[Any]:
    limits = talk.scenario.limits.model_copy(update={"turns": turns})
    loaded = LoadedScenario(talk.scenario.model_copy(update={"limits": limits}), talk.answer, talk.path)
    plan = Plan((loaded,), ("agents",), model=server.name, episodes=episodes, parallel=2)
    runner.start(plan, store, Quiet(), lambda _: None, leaks=False)
    return store.rows("SELECT * FROM v_episodes ORDER BY episode_index")
