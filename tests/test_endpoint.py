"""Servers that speak the OpenAI chat API, and ten ways in which they misbehave; all on loopback."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest

from localsim.backends import endpoint
from localsim.backends.endpoint import Endpoint, EndpointBackend, Patience, parse_endpoint
from localsim.conversation.episode import Sampling
from localsim.conversation.requests import Generation, Message, Request, Thought
from localsim.conversation.scenario import LoadedScenario
from localsim.errors import BackendUnavailable, InvalidInput
from localsim.evaluators.asking import Verdict
from localsim.runs import runner
from localsim.runs.plan import Plan
from localsim.store.database import Store
from tests.conftest import Quiet, answering
from tests.fake_server import QUICK, Behave, Server, answer, chat, send, simulate, speak


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint, "Patience", lambda: QUICK)


def test_a_run_on_a_server_is_stored_like_any_other(
    serve: Callable[..., Server], talk: LoadedScenario, store: Store
) -> None:
    server = serve(speak)
    episodes = simulate(server, talk, store)
    assert [row["status"] for row in episodes] == ["completed"] * 3 and len(server.bodies) == 12
    body = server.bodies[0]
    assert body["model"] == "m" and body["max_tokens"] > 0 and body["seed"] > 0 and "grammar" not in body
    run = store.rows("SELECT * FROM runs")[0]
    identity = json.loads(run["models_json"])[server.name]
    assert identity["kind"] == "remote" and identity["seeds"] == "passed, not guaranteed"
    from localsim.reports.compose.alone import report

    assert any(warning.startswith("Remote:") for warning in report(store, run["run_id"]).warnings)


def test_llama_cpps_own_server_gets_the_grammar_with_the_start_of_the_line(
    serve: Callable[..., Server], talk: LoadedScenario, store: Store
) -> None:
    server = serve(speak, owner="llamacpp")
    simulate(server, talk, store, episodes=1)
    first = talk.scenario.names[0]
    assert server.bodies[0]["grammar"].startswith(f'root ::= "{first}" ')


@pytest.mark.parametrize(
    "said", ["{name}: Hello there.", "Hello there.", "<think>hm\nhm</think>\n\n{name}: Hello there.\nOther: no"]
)
def test_a_reply_is_one_line_of_its_speaker(
    said: str, serve: Callable[..., Server], talk: LoadedScenario, store: Store
) -> None:
    def behave(handler: BaseHTTPRequestHandler, body: dict[str, Any], _number: int) -> None:
        # Not by the number of the request: on a busy machine one may time out and be sent again.
        asked = body["messages"][0]["content"]
        name = next(name for name in talk.scenario.names if asked.startswith(f"You are {name},"))
        answer(handler, chat(said.format(name=name)))

    simulate(serve(behave), talk, store, episodes=1)
    turns = store.rows("SELECT text, speaker FROM v_turns ORDER BY turn")
    assert [row["text"] for row in turns] == ["Hello there."] * 4
    details = json.loads(store.rows("SELECT details_json FROM generations LIMIT 1")[0]["details_json"])
    assert "Hello there." in details["raw"] and details["seed"] == "not guaranteed"


def flaky(problem: Behave, times: int = 1) -> Behave:
    """The problem at first, then a good reply."""

    def behave(handler: BaseHTTPRequestHandler, body: dict[str, Any], number: int) -> None:
        problem(handler, body, number) if number <= times else speak(handler, body, number)

    return behave


def hang(_handler: BaseHTTPRequestHandler, _body: dict[str, Any], _number: int) -> None:
    time.sleep(1.5)


def trickle(handler: BaseHTTPRequestHandler, _body: dict[str, Any], _number: int) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    try:
        for _ in range(20):
            handler.wfile.write(b" ")
            handler.wfile.flush()
            time.sleep(0.1)
    except OSError:
        pass


def close_early(handler: BaseHTTPRequestHandler, _body: dict[str, Any], _number: int) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"choices": [')
    handler.close_connection = True


PROBLEMS: dict[str, Behave] = {
    "429": lambda handler, *_: send(handler, b"{}", 429, Retry_After="0"),
    "500": lambda handler, *_: send(handler, b"oops", 500),
    "hang": hang,
    "trickle": trickle,
    "truncated JSON": lambda handler, *_: send(handler, b'{"choices": [{"mess'),
    "wrong schema": lambda handler, *_: answer(handler, {"choices": []}),
    "HTML": lambda handler, *_: send(handler, b"<html>Welcome</html>", Content_Type="text/html"),
    "closes early": close_early,
    "huge": lambda handler, *_: send(handler, b" " * 3_000_000),
    "wrong encoding": lambda handler, *_: send(handler, b"\xff\xfe\x00{"),
    "no text": lambda handler, *_: answer(handler, chat(None)),  # type: ignore[arg-type]
    "lists": lambda handler, *_: answer(handler, [1, 2]),
}


@pytest.mark.parametrize("problem", PROBLEMS)
def test_a_server_that_always_misbehaves_fails_every_episode_with_a_reason(
    problem: str, serve: Callable[..., Server], talk: LoadedScenario, store: Store
) -> None:
    begun = time.monotonic()
    episodes = simulate(serve(PROBLEMS[problem]), talk, store)
    assert [row["status"] for row in episodes] == ["failed"] * 3
    assert all("http://127.0.0.1" in row["error"] or "reply" in row["error"] for row in episodes)
    assert time.monotonic() - begun < 3 * 3 * (QUICK.timeout_s + 1), "nothing hangs past its timeout"


@pytest.mark.parametrize("problem", [name for name in PROBLEMS if name != "huge"])
def test_one_bad_answer_is_asked_again_and_nothing_is_doubled(
    problem: str, serve: Callable[..., Server], talk: LoadedScenario, store: Store
) -> None:
    episodes = simulate(serve(flaky(PROBLEMS[problem])), talk, store)
    assert [row["status"] for row in episodes] == ["completed"] * 3
    assert store.rows("SELECT count(*) AS n FROM turns")[0]["n"] == 12


def test_an_answer_with_anothers_id_or_twice_is_still_one_turn(
    serve: Callable[..., Server], talk: LoadedScenario, store: Store
) -> None:
    server = serve(lambda handler, *_: answer(handler, chat("Same.", id="same-id")))
    simulate(server, talk, store)
    assert store.rows("SELECT count(*) AS n FROM turns")[0]["n"] == 12


def test_a_refusal_is_not_repeated(serve: Callable[..., Server], talk: LoadedScenario, store: Store) -> None:
    server = serve(lambda handler, *_: send(handler, b'{"error": "no such model"}', 404))
    episodes = simulate(server, talk, store, episodes=1)
    assert "HTTP 404" in episodes[0]["error"] and "no such model" in episodes[0]["error"] and len(server.bodies) == 1


def test_a_key_is_sent_and_never_written(
    serve: Callable[..., Server], talk: LoadedScenario, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "sesame-1234")
    server = serve(speak)
    server.name = server.name.replace("#", "?key_env=MY_KEY#")
    simulate(server, talk, store, episodes=1)
    assert server.headers[0]["Authorization"] == "Bearer sesame-1234"
    assert b"sesame-1234" not in store.path.read_bytes()
    monkeypatch.delenv("MY_KEY")
    with pytest.raises(InvalidInput, match="MY_KEY is not set"):
        EndpointBackend(server.name, parallel=1)


def test_nobody_there_is_said_before_anything_is_simulated(talk: LoadedScenario, store: Store) -> None:
    plan = Plan((talk,), ("agents",), model="openai:http://127.0.0.1:9/v1#m")
    with pytest.raises(BackendUnavailable, match="no server answers"):
        runner.start(plan, store, Quiet(), lambda _: None)


def test_names_of_servers() -> None:
    assert parse_endpoint("openai:http://h:1/v1/#qwen2.5:7b") == Endpoint("http://h:1/v1", "qwen2.5:7b")
    assert parse_endpoint("openai:https://h/v1?key_env=K#m").key_env == "K"
    for wrong, problem in {
        "openai:h:1#m": "names no server",
        "openai:http://h:1/v1": "names no model",
        "openai:http://u:p@h/v1#m": "no password",
        "openai:http://h/v1?token=sk-1#m": "unknown setting 'token' in the address h$",
        "openai:http://h/v1?key_env=sk-1#m": "key_env is no name of a variable$",
    }.items():
        with pytest.raises(InvalidInput, match=problem):
            parse_endpoint(wrong)


def test_a_script_is_one_request(serve: Callable[..., Server], talk: LoadedScenario, store: Store) -> None:
    one, other = talk.scenario.names
    lines = f"{one}: Hello.\n{other}: Hi.\n{one}: Well?\n{other} [leave]: Bye.\nAnd so they went.\n"
    server = serve(lambda handler, *_: answer(handler, chat(lines)))
    plan = Plan((talk,), ("script",), model=server.name)
    done = runner.start(plan, store, Quiet(), lambda _: None)
    assert done.summary.completed == 1 and len(server.bodies) == 1
    assert [row["text"] for row in store.rows("SELECT text FROM v_turns ORDER BY turn")] == [
        "Hello.",
        "Hi.",
        "Well?",
        "Bye.",
    ]


# ---- judges that think ---------------------------------------------------------------------------------------------


def verdict_of(server: Server) -> tuple[Generation, list[dict[str, Any]]]:
    """The reply of a judge on the server to one question, and the requests after the trial."""
    backend = EndpointBackend(server.name, parallel=1, patience=Patience(timeout_s=30, pause_s=0.01))
    messages = (Message("system", "Judge."), Message("user", "How was it?"))
    request = Request(
        session="s", speaker="judge", messages=messages, prefill="Reason:", seed=1, max_tokens=50,
        sampling=Sampling(temperature=0.0), form=Verdict(0, 10),
        think=64 if backend.thinks() else 0,
    )  # fmt: skip
    try:
        return answering(backend)(request), server.bodies[1:]
    finally:
        backend.close()


def thinking(text: str | None, thought: str = "", **message: Any) -> Behave:
    """A server that thinks, in its content or beside it, and then says `text`."""

    def behave(handler: BaseHTTPRequestHandler, _body: dict[str, Any], _number: int) -> None:
        data = chat("")
        data["choices"][0]["message"] |= {"content": f"<think>\n{thought}\n</think>\n\n{text}" if thought else text}
        data["choices"][0]["message"] |= message
        answer(handler, data)

    return behave


@pytest.mark.parametrize(
    "behave",
    [
        thinking("Reason: Well.\nScore: 7", "Hm.\nScore: 1"),
        thinking("Reason: Well.\nScore: 7", reasoning_content="Hm.\nScore: 1"),
    ],
)
def test_a_judge_on_a_server_thinks_before_its_verdict(serve: Callable[..., Server], behave: Behave) -> None:
    result, bodies = verdict_of(serve(behave))
    assert Verdict(0, 10).read(result.text) == (7, "Well.")
    assert result.thought == Thought("Hm.\nScore: 1", 5, cut=False)
    assert len(bodies) == 1 and bodies[0]["max_tokens"] == 114 and bodies[0]["temperature"] > 0


def test_a_judge_that_does_not_think_is_asked_as_before(serve: Callable[..., Server]) -> None:
    result, bodies = verdict_of(serve(thinking("Reason: Well.\nScore: 7"), owner="llamacpp"))
    assert result.thought is None and len(bodies) == 1
    assert bodies[0]["max_tokens"] == 50 and bodies[0]["temperature"] == 0 and "grammar" in bodies[0]


def test_a_thought_that_fills_its_room_is_followed_by_a_verdict_in_form(serve: Callable[..., Server]) -> None:
    def behave(handler: BaseHTTPRequestHandler, body: dict[str, Any], _number: int) -> None:
        bound = "grammar" in body
        data = chat("Reason: Well.\nScore: 7\n" if bound else "<think>\nOn and on and Score: 2")
        data["choices"][0]["finish_reason"] = "stop" if bound else "length"
        answer(handler, data)

    result, bodies = verdict_of(serve(behave, owner="llamacpp"))
    assert Verdict(0, 10).read(result.text) == (7, "Well.")
    assert result.thought == Thought("On and on and Score: 2", 5, cut=True)
    free, bound = bodies
    assert free["max_tokens"] == 64 and "grammar" not in free
    assert bound["max_tokens"] == 50 and bound["chat_template_kwargs"] == {"enable_thinking": False}
    assert bound["messages"][-2] == {"role": "assistant", "content": "On and on and Score: 2"}


def test_a_server_that_only_thinks_gives_no_verdict(serve: Callable[..., Server]) -> None:
    result, bodies = verdict_of(serve(thinking(None, reasoning="Reason: x\nScore: 2")))
    assert len(bodies) == 2 and result.thought is not None and result.thought.text == "Reason: x\nScore: 2"
    assert Verdict(0, 10).read(result.text) is None, "what is thought is no verdict"
