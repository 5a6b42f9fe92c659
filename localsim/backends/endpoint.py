"""Any server that speaks the OpenAI chat API: llama-server, Ollama, LM Studio, vLLM, on this machine or another.

    openai:http://127.0.0.1:8080/v1#qwen2.5-3b-instruct
    openai:https://host/v1?key_env=NAME#model            NAME: an environment variable that holds a key

A server guarantees little: seeds are sent and recorded as not guaranteed, grammars are sent only to llama.cpp's own
server, and every reply is validated like any other. No request outlasts its timeout; a reply that does not arrive
becomes a failed generation with its reason. API: https://platform.openai.com/docs/api-reference/chat/create
"""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar
from urllib.parse import parse_qs, urlsplit

from localsim.backends.base import THINKING_TEMPERATURE
from localsim.backends.threaded import ThreadedBackend
from localsim.conversation.requests import THINK, THOUGHT, Generation, Message, Request, Thought, reply_begun
from localsim.conversation.rules.grammar import ActionLines
from localsim.conversation.scenario import WRITER
from localsim.errors import BackendUnavailable, GenerationFailed, InvalidInput

PREFIX = "openai:"
_RETRIED = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
_TRIAL_TOKENS = 256
_VERDICT = "Give your answer now, in the form that was asked for, without thinking further."
_Read = TypeVar("_Read")


@dataclass(frozen=True)
class Endpoint:
    """The address of a server, and its name for the model."""

    url: str
    """The address up to and including /v1, without a slash at its end."""
    model: str
    key_env: str | None = None
    """The environment variable that holds a key; the key itself is never stored."""


@dataclass(frozen=True)
class Patience:
    """Limits of time, attempts and size for one reply."""

    timeout_s: float = 120.0
    """Seconds from the first byte sent to the last byte read."""
    attempts: int = 5
    pause_s: float = 0.5
    """Seconds before the second attempt; doubled before each further one, with jitter, at most 30 s."""
    most_bytes: int = 2_000_000
    """The largest size of one reply."""


def parse_endpoint(name: str) -> Endpoint:
    """The endpoint that a model name means. Raises InvalidInput."""
    parts = urlsplit(name.removeprefix(PREFIX))
    hint = "write openai:http://127.0.0.1:8080/v1#NAME, where NAME is the server's name for the model"
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidInput(f"{name!r} names no server", hint=hint)
    if "?" in parts.fragment:
        raise InvalidInput(f"{name!r}: ?key_env=NAME must come before the #", hint=hint)
    if not parts.fragment:
        raise InvalidInput(f"{name!r} names no model", hint=hint)
    if parts.username or parts.password:
        raise InvalidInput(
            "a model's name is stored with the run and must hold no password", hint="use ?key_env=NAME_OF_A_VARIABLE"
        )
    query = parse_qs(parts.query)
    unknown = sorted(set(query) - {"key_env"})
    if unknown:
        raise InvalidInput(f"unknown setting {unknown[0]!r} in {name!r}", hint="the only setting is key_env=NAME")
    url = f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"
    return Endpoint(url, parts.fragment, query.get("key_env", [None])[0])


class EndpointBackend(ThreadedBackend):
    """Requests in a pool of threads, `parallel` at a time. Raises BackendUnavailable where no server answers."""

    def __init__(self, name: str, *, parallel: int, patience: Patience | None = None) -> None:
        import httpx2

        self.name = name
        self._patience = patience or Patience()
        self._endpoint = parse_endpoint(name)
        self._http = httpx2
        self._client = httpx2.Client(
            headers=self._headers(), timeout=self._patience.timeout_s, limits=httpx2.Limits(max_connections=parallel)
        )
        served = self._served()
        self._takes_grammar = any(each.get("owned_by") == "llamacpp" for each in served)
        super().__init__(parallel)
        self._thinks: bool | None = None
        self.identity: dict[str, Any] = {
            "kind": "remote",
            "name": name,
            "url": self._endpoint.url,
            "model": self._endpoint.model,
            "server": "llama.cpp" if self._takes_grammar else "unknown",
            "grammar": self._takes_grammar,
            "seeds": "passed, not guaranteed",
        }

    # ---- Backend -----------------------------------------------------------------------------------------------

    def thinks(self) -> bool:
        """True if a trial reply contains thoughts, because a server does not say so itself. The trial is made once."""
        if self._thinks is None:
            hello = {"role": "user", "content": "Say hello."}
            body = {"model": self._endpoint.model, "messages": [hello], "max_tokens": _TRIAL_TOKENS, "stream": False}
            try:
                trial = self._persistently(body, lambda data, _: _reply(data))
                self._thinks = bool(trial.thought or trial.thought_tokens)
            except GenerationFailed as error:
                raise BackendUnavailable(
                    f"{self.name} does not answer: {error}", hint="is the server running, and its model loaded?"
                ) from error
        return self._thinks

    def close(self) -> None:
        super().close()
        self._client.close()

    # ---- asking ------------------------------------------------------------------------------------------------

    def _headers(self) -> dict[str, str]:
        variable = self._endpoint.key_env
        if variable is None:
            return {}
        key = os.environ.get(variable)
        if not key:
            raise InvalidInput(f"the environment variable {variable} is not set", hint=f"export {variable}=...")
        return {"Authorization": f"Bearer {key}"}

    def _served(self) -> list[dict[str, Any]]:
        """The models that the server lists; none where its answer is not a list."""
        try:
            answer = self._client.get(f"{self._endpoint.url}/models", timeout=min(10.0, self._patience.timeout_s))
            data = answer.json().get("data")
        except self._http.TransportError as error:
            raise BackendUnavailable(
                f"no server answers at {self._endpoint.url}: {error or type(error).__name__}",
                hint="start the server first, and give the address up to /v1",
            ) from error
        except (ValueError, AttributeError):
            return []
        return [each for each in data if isinstance(each, dict)] if isinstance(data, list) else []

    def ask(self, request: Request) -> Generation:
        begun = time.perf_counter()
        if request.think:
            return self._ask_thinking(request, begun)
        return self._persistently(
            self._body(request), lambda data, retries: self._generation(request, data, begun, retries)
        )

    def _ask_thinking(self, request: Request, begun: float) -> Generation:
        """Ask for thought and reply; ask again for the reply alone where a grammar can bind it, or where none came."""
        most = request.think + (0 if self._takes_grammar else request.max_tokens)
        sampling = request.sampling
        warm = replace(sampling, temperature=max(sampling.temperature, THINKING_TEMPERATURE), grammar=False)
        body = self._body(replace(request, max_tokens=most, sampling=warm))
        free, retries = self._persistently(body, lambda data, retries: (_reply(data), retries))
        thought = Thought(free.thought, free.thought_tokens or free.tokens, cut=free.cut and not free.text.strip())
        if free.text.strip() and not self._takes_grammar:
            return self._made(request, free, begun, retries, thought)
        body = self._body(replace(request, messages=_with_thought(request, free.thought)))
        if self._takes_grammar:
            body["chat_template_kwargs"] = {"enable_thinking": False}
        bound, more = self._persistently(body, lambda data, retries: (_reply(data), retries))
        prompted = free.prompt_tokens + bound.prompt_tokens
        whole = replace(bound, prompt_tokens=prompted, tokens=free.tokens + bound.tokens)
        return self._made(request, whole, begun, retries + more, thought)

    def _persistently(self, body: Mapping[str, Any], read: Callable[[dict[str, Any], int], _Read]) -> _Read:
        """Post a request, again where that may help; returns what `read` makes of the answer and the retries."""
        for attempt in range(self._patience.attempts):
            try:
                return read(self._post(body), attempt)
            except _Again as error:
                problem = error
            if attempt + 1 < self._patience.attempts:
                time.sleep(self._pause(attempt, problem))
        raise GenerationFailed(f"{self._endpoint.url}: {problem} ({self._patience.attempts} attempts)")

    def _pause(self, attempt: int, problem: _Again) -> float:
        """Seconds before the next attempt: the server's own wish, else twice as long each time, with jitter."""
        pause = self._patience.pause_s * 2**attempt if problem.after_s is None else problem.after_s
        return min(30.0, pause) * random.uniform(0.75, 1.25)

    def _body(self, request: Request) -> dict[str, Any]:
        sampling = request.sampling
        body: dict[str, Any] = {
            "model": self._endpoint.model,
            "messages": [{"role": each.role, "content": each.content} for each in server_messages(request)],
            "max_tokens": request.max_tokens,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "seed": request.seed,
            "stream": False,
        }
        if self._takes_grammar and sampling.grammar:
            start = json.dumps(request.prefill, ensure_ascii=False)
            body["grammar"] = request.form.grammar().replace("root ::= ", f"root ::= {start} ", 1)
        return body

    def _post(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """One request, bounded in time and size. Raises _Again where another attempt may help, or GenerationFailed."""
        deadline = time.monotonic() + self._patience.timeout_s
        found = bytearray()
        try:
            with self._client.stream("POST", f"{self._endpoint.url}/chat/completions", json=body) as answer:
                for part in answer.iter_bytes():
                    found += part
                    if len(found) > self._patience.most_bytes:
                        raise GenerationFailed(f"a reply of more than {self._patience.most_bytes} bytes")
                    if time.monotonic() > deadline:
                        raise _Again(f"no whole reply within {self._patience.timeout_s:g} s")
                status, asked = answer.status_code, answer.headers.get("Retry-After", "")
        except (self._http.TransportError, self._http.DecodingError) as error:
            raise _Again(f"{type(error).__name__}: {error}") from error
        if status in _RETRIED:
            raise _Again(f"HTTP {status}", float(asked) if asked.isdecimal() else None)
        text = found.decode("utf-8", "replace")
        if status != 200:
            raise GenerationFailed(f"HTTP {status}: {' '.join(text[:200].split())}")
        try:
            data = json.loads(text)
        except ValueError:
            raise _Again(f"a reply that is not JSON: {' '.join(text[:60].split())!r}") from None
        if not isinstance(data, dict):
            raise _Again("a reply that is not a JSON object")
        return data

    def _generation(self, request: Request, data: Mapping[str, Any], begun: float, retries: int) -> Generation:
        found = _reply(data)
        if found.content is None:
            raise _Again("a reply whose content is not text")
        return self._made(request, replace(found, text=found.content), begun, retries)

    def _made(
        self, request: Request, found: _Reply, begun: float, retries: int, thought: Thought | None = None
    ) -> Generation:
        text, details = after_start(request, found.text)
        return Generation(
            text=text,
            cause="length" if found.cut else "end_of_text",
            model=f"{self._endpoint.model} at {self._endpoint.url}",
            prompt_tokens=found.prompt_tokens,
            evaluated_tokens=found.prompt_tokens,
            generated_tokens=found.tokens,
            duration_ms=(time.perf_counter() - begun) * 1000,
            details={**details, "retries": retries, "seed": "not guaranteed", "raw": found.text},
            thought=thought,
        )


@dataclass(frozen=True)
class _Reply:
    """The parts of a server's answer."""

    content: str | None
    text: str
    """The content after the thoughts in it."""
    thought: str
    thought_tokens: int
    """Tokens of the thought; 0 where the server does not count them separately."""
    cut: bool
    prompt_tokens: int
    tokens: int


class _Again(Exception):
    """A failure after which another attempt may help, at once or after the seconds that the server asked for."""

    def __init__(self, problem: str, after_s: float | None = None) -> None:
        super().__init__(problem)
        self.after_s = after_s


def _reply(data: Mapping[str, Any]) -> _Reply:
    """Read a server's answer. Raises _Again where it has no message."""
    try:
        choice = data["choices"][0]
        message = choice["message"]
        content = message.get("content")
        usage = data.get("usage") or {}
        apart = (usage.get("completion_tokens_details") or {}).get("reasoning_tokens")
        counts = [int(each or 0) for each in (usage.get("prompt_tokens"), usage.get("completion_tokens"), apart)]
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise _Again(f"a reply without choices[0].message.content ({error!r})") from None
    content = content if isinstance(content, str) else None
    thought, text = _parted(content or "")
    for name in ("reasoning_content", "reasoning"):
        if not thought and isinstance(message.get(name), str):
            thought = message[name].strip()
    cut = choice.get("finish_reason") == "length"
    return _Reply(content, text, thought, counts[2], cut, counts[0], counts[1])


def _parted(content: str) -> tuple[str, str]:
    """The thought in a content, and the text after it; a thought that does not end takes all of the content."""
    before, end, after = content.rpartition(THOUGHT)
    if end:
        return before.replace(THINK, "").strip(), after
    if content.lstrip().startswith(THINK):
        return content.replace(THINK, "").strip(), ""
    return "", content


def _with_thought(request: Request, thought: str) -> tuple[Message, ...]:
    """The chat with the thought as an assistant message, because templates drop text between marks of thinking."""
    if not thought:
        return request.messages
    return (*request.messages, Message("assistant", thought), Message("user", _VERDICT))


def server_messages(request: Request) -> tuple[Message, ...]:
    """The chat; finished lines of the reply become an assistant message, because a server takes no begun reply."""
    chat, lines = reply_begun(request.messages)
    note = f"\n{request.note}" if request.note else ""
    if not lines:
        return (*chat[:-1], replace(chat[-1], content=f"{chat[-1].content}{note}")) if note else chat
    go_on = Message("user", f"Go on from there. The next line begins with {request.prefill}.{note}")
    return (*chat, Message("assistant", "\n".join(lines)), go_on)


def after_start(request: Request, content: str) -> tuple[str, dict[str, Any]]:
    """The text after the prefill, and details about changes to a reply that does not begin with it.

    Thoughts and empty lines in front are cut off (the raw reply is kept in the details); only the first line of an
    agent's reply counts. A line without a name belongs to the agent that was asked, as a local model's reply would.
    """
    thought, end, after = content.rpartition(THOUGHT)
    details: dict[str, Any] = {"thinking_characters": len(thought)} if end else {}
    text = after.lstrip().replace("\r\n", "\n")
    one_line = isinstance(request.form, ActionLines) and len(request.form.lines) == 1
    if request.observation is not None and (request.speaker != WRITER or one_line):
        text = text.partition("\n")[0] + "\n"
    if text.startswith(request.prefill):
        return text.removeprefix(request.prefill), details
    if request.observation is None:  # a judge, whose lines have no speaker
        return f" {text}", details
    return f": {text}", {**details, "name_added": True}
