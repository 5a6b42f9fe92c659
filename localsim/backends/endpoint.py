"""Any server that speaks the OpenAI chat API: llama-server, Ollama, LM Studio, vLLM, on this machine or another.

    openai:http://127.0.0.1:8080/v1#qwen2.5-3b-instruct
    openai:https://host/v1?key_env=NAME#model            NAME: an environment variable that holds a key

A server guarantees little: seeds are sent and recorded as not guaranteed, grammars are sent only to llama.cpp's own
server, and every reply is validated like any other. No request outlasts its timeout; a reply that does not arrive
becomes a failed generation with its reason. API: https://platform.openai.com/docs/api-reference/chat/create
"""

from __future__ import annotations

import json
import math
import os
import random
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from localsim.backends.base import THINKING_TEMPERATURE
from localsim.backends.completions import RETRIED, Again, Completion, Refused, completion, decoded, hidden, own_words
from localsim.backends.replies import MARK, generation_of
from localsim.backends.threaded import ThreadedBackend
from localsim.conversation.requests import Generation, Message, Request, Thought, reply_begun
from localsim.errors import BackendUnavailable, GenerationFailed, InvalidInput
from localsim.network import route_to

if TYPE_CHECKING:
    from localsim.backends.client import Answer

PREFIX = "openai:"
_TRIAL_TOKENS = 256
_LIST_S = 10.0
"""Seconds for the list of a server's models."""
_VERDICT = "Give your answer now, in the form that was asked for, without thinking further."
_LIVE = re.compile(
    rf"{MARK.pattern}|</?(?:\w+:)?think(?:ing)?>|\[/?THINK\]|</?(?:start_of_|end_of_)?(?:image|img|audio|video)(?:_\w+)?>",
    re.IGNORECASE,
)


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
    hint = "write openai:http://127.0.0.1:8080/v1#NAME, where NAME is the server's name for the model"
    try:
        parts = urlsplit(name.removeprefix(PREFIX))
        served = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        served = False
    if not served:
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
        raise InvalidInput(
            f"unknown setting {unknown[0]!r} in the address {parts.netloc}", hint="the only setting is key_env=NAME"
        )
    key_env = query.get("key_env", [None])[0]
    if key_env is not None and not key_env.isidentifier():
        raise InvalidInput("key_env is no name of a variable", hint="write key_env=MY_KEY, and put the key into MY_KEY")
    url = f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"
    return Endpoint(url, parts.fragment, key_env)


def _key_of(place: Endpoint) -> str:
    """The key of an address, '' for none. Raises InvalidInput, without the key, where no request can carry it."""
    if place.key_env is None:
        return ""
    key = os.environ.get(place.key_env, "").strip()
    if not key:
        raise InvalidInput(f"the environment variable {place.key_env} is not set", hint=f"export {place.key_env}=...")
    if not (key.isascii() and key.isprintable()):
        raise InvalidInput(
            f"the key in {place.key_env} holds characters that no request can carry",
            hint="set it again, without breaks",
        )
    return key


class EndpointBackend(ThreadedBackend):
    """Requests in a pool of threads, `parallel` at a time. Raises BackendUnavailable where no server answers."""

    def __init__(
        self,
        name: str,
        *,
        parallel: int,
        patience: Patience | None = None,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        from localsim.backends import client

        self.name = name
        self._patience = patience or Patience()
        self._endpoint = parse_endpoint(name)
        self._key = _key_of(self._endpoint)
        route = route_to(self._endpoint.url)
        if route.told:
            say(route.told)
        headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        self._no_answer, self._too_long = client.NoAnswer, client.TooLong
        self._client = client.Client(route, headers, parallel)
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
                trial, _ = self._persistently(body, free=True)
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

    def _served(self) -> list[dict[str, Any]]:
        """The models that the server lists; none where its answer is not a list."""
        try:
            data = decoded(self._send("GET", "models", most_s=_LIST_S).body, self._key)
        except Again as error:
            if not isinstance(error.__cause__, self._no_answer):
                return []
            raise BackendUnavailable(
                f"no server answers at {self._endpoint.url}: {error}",
                hint="start the server first, and give the address up to /v1",
            ) from error
        except GenerationFailed:
            return []
        found = data.get("data") if isinstance(data, dict) else None
        return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []

    def ask(self, request: Request) -> Generation:
        begun = time.perf_counter()
        if request.think:
            return self._ask_thinking(request, begun)
        found, retries = self._persistently(self._body(request))
        return self._made(request, found, begun, retries)

    def _ask_thinking(self, request: Request, begun: float) -> Generation:
        """Ask for thought and reply; ask again for the reply alone where a grammar can bind it, or where none came."""
        most = request.think + (0 if self._takes_grammar else request.max_tokens)
        sampling = request.sampling
        warm = replace(sampling, temperature=max(sampling.temperature, THINKING_TEMPERATURE), grammar=False)
        body = self._body(replace(request, max_tokens=most, sampling=warm))
        free, retries = self._persistently(body, free=True)
        thought = Thought(free.thought, free.thought_tokens or free.tokens, cut=free.cut and not free.text.strip())
        if free.text.strip() and not self._takes_grammar:
            return self._made(request, free, begun, retries, thought)
        body = self._body(replace(request, messages=_with_thought(request, free.thought)))
        if self._takes_grammar:
            body["chat_template_kwargs"] = {"enable_thinking": False}
        bound, more = self._persistently(body, free=True)
        prompted = free.prompt_tokens + bound.prompt_tokens
        whole = replace(bound, prompt_tokens=prompted, tokens=free.tokens + bound.tokens)
        return self._made(request, whole, begun, retries + more, thought)

    def _persistently(self, body: Mapping[str, Any], *, free: bool = False) -> tuple[Completion, int]:
        """Post a request, again where that may help; returns the answer and the retries.

        Unless `free`, an answer that says neither anything nor why is none.
        """
        for attempt in range(self._patience.attempts):
            try:
                found = completion(self._post(body))
                if free or found.content is not None or found.withheld:
                    return found, attempt
                problem = Again("a reply whose content is not text")
            except Again as error:
                problem = error
            except RecursionError:
                problem = Again("a reply that is nested too deeply")
            except Refused as error:
                raise GenerationFailed(f"{self._endpoint.url}: {error}") from error
            if attempt + 1 < self._patience.attempts:
                time.sleep(self._pause(attempt, problem))
        raise GenerationFailed(f"{self._endpoint.url}: {problem} ({self._patience.attempts} attempts)")

    def _pause(self, attempt: int, problem: Again) -> float:
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

    def _post(self, body: Mapping[str, Any]) -> Any:
        """One request, bounded in time and size. Raises Again where another attempt may help, or GenerationFailed."""
        sent = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
        answer = self._send("POST", "chat/completions", sent)
        if answer.status in (200, 201):
            return decoded(answer.body, self._key)
        raise self._problem(answer)

    def _send(self, method: str, path: str, body: bytes | None = None, most_s: float = math.inf) -> Answer:
        seconds, most = min(most_s, self._patience.timeout_s), self._patience.most_bytes
        try:
            return self._client.send(method, f"{self._endpoint.url}/{path}", body, timeout_s=seconds, most_bytes=most)
        except self._no_answer as error:
            raise Again(hidden(str(error), self._key)) from error
        except self._too_long as error:
            raise GenerationFailed(f"a reply of {error}") from error

    def _problem(self, answer: Answer) -> Again | GenerationFailed:
        """What an answer with another status than 200 or 201 means, in the server's own words."""
        try:
            said = own_words(decoded(answer.body, self._key))
        except Again:
            text = hidden(answer.body[:2_000].decode("utf-8", "replace"), self._key)[:200]
            said = " ".join("".join(char if char.isprintable() else " " for char in text).split())
        if 300 <= answer.status < 400:
            there = hidden(answer.headers.get("location", ""), self._key)[:200]
            said = f"a redirect to {there or 'nowhere'}, which is not followed; give that address"
        told = f"HTTP {answer.status}" + (f": {said}" if said else "")
        asked = answer.headers.get("retry-after", "")
        if answer.status in RETRIED:
            return Again(told, float(asked[:6]) if asked.isdecimal() else None)
        return GenerationFailed(told)

    def _made(
        self, request: Request, found: Completion, begun: float, retries: int, thought: Thought | None = None
    ) -> Generation:
        details: dict[str, Any] = {"retries": retries, "seed": "not guaranteed"}
        if found.thought and thought is None:
            details["thinking_characters"] = len(found.thought)
        return generation_of(
            request,
            found.content or "",
            cut=found.cut,
            withheld=found.withheld,
            model=f"{self._endpoint.model} at {self._endpoint.url}",
            prompt_tokens=found.prompt_tokens,
            evaluated_tokens=found.prompt_tokens,
            generated_tokens=found.tokens,
            duration_ms=(time.perf_counter() - begun) * 1000,
            details=details,
            thought=thought,
        )


def _with_thought(request: Request, thought: str) -> tuple[Message, ...]:
    """The chat with the thought as an assistant message, because templates drop text between marks of thinking."""
    if not thought:
        return request.messages
    return (*request.messages, Message("assistant", thought), Message("user", _VERDICT))


def server_messages(request: Request) -> tuple[Message, ...]:
    """The chat that a server gets."""
    return sent(request.messages, request.note, request.prefill)


def sent(messages: Sequence[Message], note: str, prefill: str) -> tuple[Message, ...]:
    """The chat; finished lines of the reply become an assistant message, because a server takes no begun reply."""
    chat, lines = reply_begun(messages)
    added = f"\n{note}" if note else ""
    if lines:
        go_on = Message("user", f"Go on from there. The next line begins with {prefill}.{added}")
        chat = (*chat, Message("assistant", "\n".join(lines)), go_on)
    elif added:
        chat = (*chat[:-1], replace(chat[-1], content=f"{chat[-1].content}{added}"))
    return tuple(replace(each, content=inert(each.content)) for each in chat)


def inert(text: str) -> str:
    """Return a text whose marks of templates, such as `<|im_end|>`, do not act: most servers read them in any text.

    Templates cut replies at marks of thoughts too. A character without width (U+2060) follows the first one of a mark.
    """
    return _LIVE.sub(lambda mark: f"{mark[0][0]}\u2060{mark[0][1:]}", text)
