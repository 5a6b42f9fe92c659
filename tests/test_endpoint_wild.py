"""Servers that do everything wrong: nothing ends a run, nothing is invented, no key and no prompt goes astray."""

from __future__ import annotations

import json
import random
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

import localsim
from localsim.backends import endpoint
from localsim.backends.base import Done
from localsim.backends.client import Client
from localsim.backends.completions import Again, Refused, completion, decoded
from localsim.backends.endpoint import EndpointBackend, Patience, server_messages
from localsim.conversation.requests import Generation, Message, Request, Thought
from localsim.conversation.scenario import LoadedScenario
from localsim.errors import BackendUnavailable, InvalidInput
from localsim.machine.doctor import _network
from localsim.network import is_here, route_to
from localsim.reports.audit import audit_run
from localsim.runs import runner
from localsim.runs.plan import Plan
from localsim.store.database import Store
from tests.conftest import Quiet
from tests.fake_server import QUICK, Server, answer, chat, send, simulate

NAMES = ("Ana", "Bo")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint, "Patience", lambda: QUICK)
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


# ---- replies of every kind -------------------------------------------------------------------------------------------

GOOD = [
    "{n}: word1.", "word1.", "**{n}**: word1.", '"{n}": word1.', "[{n}] word1.", "{n} - word1.", "{n}：word1.",
    "{N}: word1.", "```\n{n}: word1.\n```", "Sure! Here is my reply:\n\n{n}: word1.",
    "<think>secret1</think>{n}: word1.", "<thinking>secret1</thinking>\n{n}: word1.",
    "<|channel|>analysis<|message|>secret1<|channel|>final<|message|>word1.",
    "{n}: word1.\n{o}: secret1", "{n}: (smiles) word1.", "{n}: word1.<|im_end|><|im_start|>user\nsecret1",
    "<b>{n}:</b> word1.", "<{n}>word1.</{n}>", "<plan>secret1</plan>\nword1.", "{n}: word1. <!-- secret1 -->",
    "Turn 3 ({n}): word1.", "As {n}, I would say: word1.", "\u200e{n}: word1.",
    "<|inner_prefix|>secret1<|inner_suffix|>word1.",
]  # fmt: skip
BAD = [
    "", "   ", "{o}: secret1", "<think>secret1", "<thinking>secret1", "[THINK]secret1", "Here is my reply:",
    "(secret1)", "secret1\nsecret1", '{"text": "secret1"}', "{n} thinks: secret1", "{n} (whispering): secret1",
    "```\n```", "{n}:", "<|im_start|>user\nsecret1", "Sure!\n{o}: secret1",
    "<{o}>secret1</{o}>", "Turn 3 ({o}): secret1", "{o} would say: secret1", "{n} to {o}: secret1",
    '{n}: {"a": "secret1"}',
    "<|inner_prefix|>secret1", "<tool_call>{}</tool_call>",
]  # fmt: skip
BODIES: list[bytes] = [
    b"", b"{", b"[]", b"null", b"[" * 100_000, b'{"choices":[]}', b'{"choices":[{"message":{"content":"x\\ud83d"}}]}',
    b'{"choices":[{"message":{"content":"x"}}],"usage":{"prompt_tokens":-5}}',
    b'{"choices":[{"message":{"content":"x"}}],"usage":{"prompt_tokens":10000000000}}',
    b'{"choices":[{"message":{"content":"x"}}],"usage":{"completion_tokens":NaN}}',
    b'{"choices":[{"message":{"content":"x"}}],"usage":{"completion_tokens":1e400}}',
    b'{"choices":[{"message":{"content":"x"}}],"usage":{"completion_tokens":' + b"9" * 5000 + b"}}",
    b'{"choices":[{"message":{"content":"x"}}],"usage":{"completion_tokens":"many"}}',
    b'{"choices":[{"message":{"content":{"a":1}}}]}', b'{"choices":[{"message":{"content":null}}]}',
    b'{"choices":[{"message":{"content":"secret1"},"finish_reason":"content_filter"}]}',
    b'{"choices":[{"message":{"content":null,"refusal":"secret1"}}]}', b'{"error":{"message":"quota","code":429}}',
    b'{"error":"no such model"}', b'{"detail":[{"msg":"wrong"}]}', b'{"choices":[{"message":{"content":"a\\u0000b"}}]}',
    b'{"choices":[{"message":{"content":"","reasoning_content":"secret1"}}]}', b"\xff\xfe{",
    b'{"choices":[{"message":{"content":"secret1"},"finish_reason":"tool_calls"}]}',
    b'{"choices":[{"message":{"content":"x","reasoning":' + b"[" * 900 + b"]" * 900 + b'}}]}',
    b'{"choices":[{"message":{"content":"secret1"},"error":{"message":"cut off"}}]}', b'{"choices":[NaN]}',
    b'{"choices":[{"message":{"content":"secret1"},"finish_reason":"insufficient_system_resource"}]}',
]  # fmt: skip


def wild(seed: int) -> Callable[[BaseHTTPRequestHandler, dict[str, Any], int], None]:
    """One reply of each kind, in any order; most are good, so that talks go on."""
    draw, lock = random.Random(seed), threading.Lock()

    def behave(handler: BaseHTTPRequestHandler, body: dict[str, Any], _number: int) -> None:
        told = "\n".join(message["content"] for message in body["messages"])
        name = next((name for name in NAMES if told.startswith(f"You are {name},")), "Ana")
        other = NAMES[1 - NAMES.index(name)]
        with lock:
            kind, place = draw.random(), draw.randrange(1000)
        if kind < 0.1:
            send(handler, BODIES[place % len(BODIES)])
        elif kind < 0.13:
            send(handler, b'{"error": {"message": "busy"}}', (429, 500, 404, 301)[place % 4], Retry_After="0")
        else:
            text = (BAD if kind < 0.3 else GOOD)[place % (len(BAD) if kind < 0.3 else len(GOOD))]
            answer(handler, chat(text.replace("{n}", name).replace("{N}", name.upper()).replace("{o}", other)))

    return behave


def test_a_run_against_a_server_that_does_everything_wrong_ends_by_itself(
    serve: Callable[..., Server], talk: LoadedScenario, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoint, "Patience", lambda: Patience(timeout_s=20, attempts=2, pause_s=0))
    episodes = simulate(serve(wild(7)), talk, store, episodes=20)
    by_status = {status: [row for row in episodes if row["status"] == status] for status in ("completed", "failed")}
    assert len(by_status["completed"]) + len(by_status["failed"]) == 20 and min(map(len, by_status.values())) > 1
    assert all(row["error"] for row in by_status["failed"])
    said = {row["text"] for row in store.rows("SELECT text FROM turns WHERE action = 'speak'")}
    assert said <= {"word1.", "a b", "x"}, "nothing is spoken that is not one line of its speaker"


def test_a_value_that_cannot_be_used_fails_an_episode_and_never_the_run(
    serve: Callable[..., Server], talk: LoadedScenario, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoint, "Patience", lambda: Patience(timeout_s=20, attempts=1, pause_s=0))
    left, lock = BODIES * 2, threading.Lock()

    def behave(handler: BaseHTTPRequestHandler, *_: Any) -> None:
        with lock:
            body = left.pop(0) if left else json.dumps(chat("word1.")).encode()
        send(handler, body)

    episodes = simulate(serve(behave), talk, store, episodes=len(BODIES), turns=1)
    assert len(episodes) == len(BODIES) and all(row["error"] for row in episodes if row["status"] == "failed")
    assert sum(row["status"] == "failed" for row in episodes) > len(BODIES) // 2
    assert {row["text"] for row in store.rows("SELECT text FROM turns")} <= {"word1.", "a b", "x"}


@pytest.mark.parametrize("text", ["half \ud83d", 12, None, float("nan")])
def test_a_function_that_returns_what_cannot_be_stored_fails_its_episode_alone(text: Any) -> None:
    told = iter([text])
    done = localsim.run("a_secret_kept", model=lambda _: next(told, "Hello."), episodes=2, parallel=1, leaks=False)
    assert (done.completed, done.failed) == (1, 1)


def test_numbers_beyond_the_database_become_failures_whoever_counts_them() -> None:
    for wrong in ({"prompt_tokens": 2**31}, {"generated_tokens": -1}, {"duration_ms": float("nan")},
                  {"thought": Thought("x", 2**40, cut=False)}, {"details": {"a": float("inf")}}):  # fmt: skip
        assert not isinstance(Done(1, Generation("x", "finished", "m", **wrong)).result, Generation)
    assert isinstance(Done(1, Generation("x", "finished", "m", prompt_tokens=2**31 - 1)).result, Generation)


OWN_WORDS = {
    '{"object": "error", "message": "4096 at most", "code": 400}': (Refused, "4096 at most"),
    '{"choices": [{"error": {"code": 502, "message": "no provider"}, "message": {"content": "x"}}]}': (
        Again,
        "no provider",
    ),
    '{"error": {"message": "odd", "code": "' + "9" * 5000 + '"}}': (Again, "odd"),
    '{"fault": {"faultstring": "slow down", "detail": {"errorcode": "x"}}}': (Again, "slow down"),
    '{"type": "about:blank", "title": "busy", "status": 429}': (Again, "busy"),
    '{"message": {"role": "assistant", "content": "secret1"}, "done": true}': (Again, "without choices"),
    '{"error": {"message": "the quota is used up", "code": 429}}': (Again, "the quota is used up"),
    '{"error": {"message": "no such model", "code": "404"}}': (Refused, "no such model"),
    '{"error": "busy"}': (Again, "busy"),
    '[{"error": {"message": "bad key", "code": 400}}]': (Again, "bad key"),
    '{"object": "error", "message": "too long"}': (Again, "too long"),
    '{"detail": [{"loc": ["x"], "msg": "field required"}]}': (Again, "field required"),
}


@pytest.mark.parametrize("body", OWN_WORDS)
def test_the_servers_own_reason_is_kept(body: str) -> None:
    kind, words = OWN_WORDS[body]
    with pytest.raises(kind, match=words):
        completion(json.loads(body))


def test_parts_and_reasons_of_answers_are_read() -> None:
    def of(message: dict[str, Any], reason: str | None = "stop") -> Any:
        return completion({"choices": [{"message": message, "finish_reason": reason}]})

    parts = [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "Ana: Hi."}]
    assert (of({"content": parts}).text, of({"content": parts}).thought) == ("Ana: Hi.", "hm")
    assert of({"content": "x"}, "MAX_TOKENS").cut and not of({"content": "x"}, None).cut
    assert "content_filter" in of({"content": "x"}, "content_filter").withheld
    assert "I will not" in of({"content": None, "refusal": "I will not"}).withheld
    assert "no words" in of({"content": "", "reasoning_content": "hm"}).withheld
    assert "within its thoughts" in of({"content": "<think>hm"}, "length").withheld
    assert of({"content": "x"}, "stop").withheld == ""
    for reason in ("token_limit", "model_context_window_exceeded", "maxPredictedTokensReached", {"type": "length"}):
        assert of({"content": "x"}, reason).cut and not of({"content": "x"}, reason).withheld  # type: ignore[arg-type]
    for reason in ("insufficient_system_resource", "guardrail_intervened", "ERROR_TOXIC", "failed", "OTHER"):
        assert reason.lower() in of({"content": "x"}, reason).withheld
    for reason in ("eosFound", "end_turn", "stop_sequence", "COMPLETE", ["stop"], 1):
        assert not of({"content": "x"}, reason).withheld and not of({"content": "x"}, reason).cut  # type: ignore[arg-type]
    assert "a tool" in of({"content": "", "tool_calls": [{"id": "1"}]}).withheld
    assert "I can't" in of({"content": [{"type": "refusal", "refusal": "I can't"}]}).withheld
    for content in (["Hi."], {"type": "text", "text": "Hi."}, [{"type": "output_text", "text": "Hi."}]):
        assert of({"content": content}).text == "Hi."
    for beside in ({"reasoning_details": [{"text": "hm"}]}, {"thinking_blocks": [{"thinking": "hm"}]}, {
        "reasoning": {"content": "hm"}
    }):  # fmt: skip
        assert of({"content": "Hi.", **beside}).thought == "hm"
    for usage in (None, [1], "none", {"completion_tokens_details": []}, {"input_tokens": 3, "output_tokens": 2}):
        found = completion({"choices": [{"message": {"content": "x"}}], "usage": usage})
        assert (found.prompt_tokens, found.tokens) in {(0, 0), (3, 2)}
    assert decoded(b'\xef\xbb\xbf{"a": 1}', "") == {"a": 1}


def test_a_mark_of_a_template_is_inert_in_what_is_sent() -> None:
    messages = (
        Message("system", "s"),
        Message("user", "Ben: <|im_end|> <start_of_turn> [/INST] <turn|> [|user|] ]~b] </think> <image> a < b"),
    )
    request = Request(
        session="s", speaker="Ana", messages=messages, prefill="Ana", seed=1, max_tokens=9, sampling=None, form=None,  # type: ignore[arg-type]
    )  # fmt: skip
    sent = server_messages(request)[1].content
    assert sent.replace("\u2060", "") == messages[1].content and sent.endswith("a < b")
    assert not any(mark in sent for mark in messages[1].content.split()[1:-3])


def test_the_audit_finds_a_mark_that_a_model_has_drawn(
    serve: Callable[..., Server], talk: LoadedScenario, store: Store
) -> None:
    simulate(serve(lambda handler, *_: answer(handler, chat("Hello."))), talk, store, episodes=1)
    run = store.rows("SELECT run_id FROM runs")[0]["run_id"]
    assert not audit_run(store, run).violations
    with store.writing() as connection:
        connection.execute("UPDATE turns SET text = 'Well <end_of_turn>' WHERE turn = 2")
        connection.execute("UPDATE turns SET values_json = '[\"<turn|>\"]' WHERE turn = 3")
    assert [each.what for each in audit_run(store, run).violations if "mark" in each.what] == [
        "mark of roles <end_of_turn>",
        "mark of roles <turn|>",
    ]


# ---- time, size, keys, redirects -------------------------------------------------------------------------------------


@contextmanager
def raw(reply: Callable[[socket.socket], None]) -> Iterator[str]:
    """A server that answers each connection as it likes, after the head of the request."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def talk_to(one: socket.socket) -> None:
            try:
                with one:
                    one.recv(65536)
                    reply(one)
            except OSError:
                pass

        def accept() -> None:
            try:
                while True:
                    threading.Thread(target=talk_to, args=(listening.accept()[0],), daemon=True).start()
            except OSError:
                pass

        threading.Thread(target=accept, daemon=True).start()
        yield f"openai:http://127.0.0.1:{listening.getsockname()[1]}/v1#m"


def dripping(one: socket.socket) -> None:
    for byte in b"HTTP/1.1 200 OK\r\n" + b"X-Slow: 1\r\n" * 40:
        one.sendall(bytes([byte]))
        time.sleep(0.1)


def endless(one: socket.socket) -> None:
    one.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n[")
    while True:
        one.sendall(b" " * 1_000_000)


def test_heads_that_drip_end_in_time_and_a_list_of_models_is_bounded() -> None:
    begun = time.monotonic()
    with raw(dripping) as name, pytest.raises(BackendUnavailable, match="no whole reply within"):
        EndpointBackend(name, parallel=1)
    assert time.monotonic() - begun < 8
    with raw(endless) as name:
        EndpointBackend(name, parallel=1, patience=Patience(timeout_s=20)).close()


def test_a_key_that_a_server_repeats_is_neither_stored_nor_printed(
    serve: Callable[..., Server], talk: LoadedScenario, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "sk-sesame-1234\n")
    told: list[str] = []
    escaped = "".join(f"\\u{ord(char):04x}" for char in "sk-sesame-1234")
    bodies = [
        (401, b'{"error": {"message": "Incorrect API key provided: Bearer sk-sesame-1234"}}'),
        (500, b"<html>sk-sesame-1234</html>"), (302, b""), (200, b"sk-sesame-1234 is no JSON"),
        (400, b'{"error": "bad SK-SESAME-1234, sk-sesame-12... or ...-sesame-1234"}'),
        (200, b'{"error": "bad sk-sesame-1234"}'), (200, json.dumps(chat("Ana: sk-sesame-1234")).encode()),
        (403, f'{{"error": "bad {escaped}"}}'.encode()),
    ]  # fmt: skip
    for status, body in bodies:
        there = {"Location": "http://127.0.0.1:9/?key=sk-sesame-1234"}
        server = serve(lambda handler, *_, s=status, b=body, t=there: send(handler, b, s, **t))
        server.name = server.name.replace("#", "?key_env=MY_KEY#")
        plan = Plan((talk,), ("agents",), model=server.name)
        runner.start(plan, store, Quiet(), told.append, leaks=False)
        assert server.headers[0]["Authorization"] == "Bearer sk-sesame-1234"
    stored = json.dumps(
        [store.rows(f"SELECT * FROM {table}") for table in ("episodes", "generations", "contents", "turns")],
        default=str,
    )
    assert "sesame" not in (stored + "".join(told)).casefold() and "sesame" not in Path(store.path).read_bytes().decode(
        "latin-1"
    )
    assert any("redirect" in (row["error"] or "") for row in store.rows("SELECT error FROM episodes"))
    monkeypatch.setenv("MY_KEY", "sk-\u00e9sesame")
    with pytest.raises(InvalidInput) as refused:
        EndpointBackend(server.name, parallel=1)
    assert "sesame" not in str(refused.value)


# ---- no network unless asked -----------------------------------------------------------------------------------------

HERE = (
    "localhost LOCALHOST localhost. x.localhost 127.0.0.1 127.1 127.0.0.53 0x7f000001 2130706433 0177.0.0.1 [::1] ::1 "
    "0:0:0:0:0:0:0:1 ::ffff:127.0.0.1 0.0.0.0 [::] 0 [::ffff:7f00:1] [::1%lo] 0x7f.1 ip6-localhost １２７.0.0.1"
).split()


@pytest.mark.parametrize("host", HERE)
def test_this_machine_is_known_in_every_spelling(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    assert is_here(host)
    named = f"[{host}]" if ":" in host and not host.startswith("[") else host
    assert route_to(f"http://{named}:8080/v1").proxy == ""


def test_another_machine_is_reached_through_a_proxy_only_with_a_notice(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not is_here("192.0.2.7") and not is_here("127.0.0.1.example.invalid")
    assert route_to("http://192.0.2.7/v1").told == "" and "no proxy" in _network().value
    monkeypatch.setenv("HTTP_PROXY", "user:pass@192.0.2.9:3128")
    told = route_to("http://192.0.2.7/v1").told
    assert told == "requests to 192.0.2.7 go through the proxy http://192.0.2.9:3128 (HTTP_PROXY)"
    assert "192.0.2.9" in _network().value and "pass" not in _network().value
    monkeypatch.setenv("no_proxy", "192.0.2.7")
    assert route_to("http://192.0.2.7/v1").told == ""


SPARED = {
    "192.0.2.1": "192.0.2.1 192.0.2.1:80 * 192.0.2.* 192.0.2.0/24 0.0.0.0/0 a,192.0.2.1,b",
    "a.example.org": "example.org .example.org *.example.org EXAMPLE.ORG a.example.org.",
    "[2001:db8::1]": "2001:db8::1 [2001:db8::1] 2001:db8::/32 [2001:db8::1]:80",
}
NOT_SPARED = {
    "192.0.2.1": "192.0.2 2.1 .2.1 192.0.2.1:8080 192.0.3.0/24 192.0.2.0/33 bad/x",
    "badexample.org": "example.org .example.org a.badexample.org",
}


def test_no_proxy_and_the_names_of_variables_count_in_every_spelling(monkeypatch: pytest.MonkeyPatch) -> None:
    for spared, entries in ((True, SPARED), (False, NOT_SPARED)):
        for host, several in entries.items():
            for entry in several.split():
                with monkeypatch.context() as setting:
                    setting.setenv("Http_Proxy", "http://192.0.2.9:3128")
                    setting.setenv("No_Proxy", f" {entry} ")
                    route = route_to(f"http://{host}/v1")
                assert (route.proxy == "") is spared, (host, entry)
                assert spared or "(Http_Proxy)" in route.told
    for proxy in ("http://", "http://:3128", "http://a:port", "http://a:99999", "http://[::1", "http://a b:1", "a:0"):
        monkeypatch.setenv("all_proxy", proxy)
        with pytest.raises(BackendUnavailable, match="cannot use the proxy"):
            route_to("http://192.0.2.1/v1")
    for proxy in (
        "//192.0.2.9:1",
        " 192.0.2.9:1 ",
        "u:p%40s@192.0.2.9:1",
        "http://u:p\u00e4@192.0.2.9:1",
        "http://\u043f:1",
    ):
        monkeypatch.setenv("all_proxy", proxy)
        Client(route_to("http://192.0.2.1/v1"), {}, 1).close()


def test_prompts_for_this_machine_pass_no_proxy(
    serve: Callable[..., Server], talk: LoadedScenario, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for proxy in ("http://127.0.0.1:9", "socks5://127.0.0.1:9"):
        for name in ("http_proxy", "https_proxy", "all_proxy", "ALL_PROXY", "HTTP_PROXY"):
            monkeypatch.setenv(name, proxy)
        server = serve(lambda handler, *_: answer(handler, chat("Hello.")))
        server.name = server.name.replace("127.0.0.1", "localhost")
        episodes = simulate(server, talk, store, episodes=1)
        assert episodes[-1]["status"] == "completed"


def test_a_proxy_is_stated_at_the_start_and_one_that_cannot_be_used_is_one_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said: list[str] = []
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    with pytest.raises(BackendUnavailable, match="no server answers"):
        EndpointBackend("openai:http://192.0.2.7/v1#m", parallel=1, say=said.append)
    assert said == ["requests to 192.0.2.7 go through the proxy http://127.0.0.1:9 (http_proxy)"]
    monkeypatch.setattr("localsim.network.find_spec", lambda _: None)
    for proxy, problem in {"socks5://127.0.0.1:9": "SOCKS proxy", "ftp://127.0.0.1:9": "cannot use the proxy"}.items():
        monkeypatch.setenv("http_proxy", proxy)
        with pytest.raises(BackendUnavailable, match=problem) as refused:
            EndpointBackend("openai:http://192.0.2.7/v1#m", parallel=1)
        assert "http_proxy" in (refused.value.hint or "")
    assert re.search("socksio", _network().advice) is None
