"""What stands before every page: who may ask, how much, how often, and what a browser may do with the answer.

Loopback is no protection by itself: any page that a person has open may send requests to 127.0.0.1. So the Host must be
one we serve (against DNS rebinding), writes need our own Origin and a token that only our pages hold, and a server on a
network asks for an access token besides.
"""

from __future__ import annotations

import hmac
import secrets
import time
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from localsim.errors import InvalidInput

CSRF_FIELD = "csrf"
_SAFE_METHODS = ("GET", "HEAD")
_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
"""A page that brings its own content-security-policy keeps it."""


@dataclass(frozen=True)
class Rules:
    """What is let through."""

    hosts: frozenset[str]
    """Values of the Host header, in lower case."""
    access: str | None = None
    """A token that every visitor must have given once; None on loopback."""
    most_bytes: int = 256_000
    """Of a request's body."""
    rate: float = 100.0
    """Requests a second of one address, over time."""
    burst: float = 400.0


def hosts_of(host: str, port: int) -> frozenset[str]:
    """The Host headers of a server on `host`: its own name, and the names of loopback."""
    names = {host.lower(), "127.0.0.1", "localhost", "[::1]"}
    found = {f"{name}:{port}" for name in names}
    return frozenset(found | names if port == 80 else found)  # browsers leave the usual port out


@dataclass
class _Bucket:
    left: float
    at: float = field(default_factory=time.monotonic)


class Guard:
    """ASGI middleware that applies the rules."""

    def __init__(self, app: ASGIApp, rules: Rules) -> None:
        self._app = app
        self._rules = rules
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse, or hand on."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        request = Request(scope)
        refusal = self._refusal(request)
        if refusal is not None:
            await refusal(scope, receive, self._with_headers(send, None))
            return
        csrf = request.cookies.get(_cookie_name(request, "csrf"), "")
        new = None if csrf else secrets.token_urlsafe(18)
        scope.setdefault("state", {})["csrf"] = csrf or new
        await self._app(
            scope,
            self._bounded(receive),
            self._with_headers(send, f"{_cookie_name(request, 'csrf')}={new}" if new else None),
        )

    # ---- who may ask -------------------------------------------------------------------------------------------

    def _refusal(self, request: Request) -> Response | None:
        if request.headers.get("host", "").lower() not in self._rules.hosts:
            return PlainTextResponse("This server does not answer to that name.\n", 421)
        if not self._has_room(request.client.host if request.client else ""):
            return PlainTextResponse("Too many requests. Wait a moment.\n", 429, {"retry-after": "2"})
        if not (_same_origin(request) if request.method not in _SAFE_METHODS else _is_visit(request)):
            return PlainTextResponse("Refused: the request comes from another site.\n", 403)
        length = request.headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > self._rules.most_bytes:
            return PlainTextResponse(f"At most {self._rules.most_bytes} bytes are taken.\n", 413)
        return self._access(request)

    def _access(self, request: Request) -> Response | None:
        wanted = self._rules.access
        if wanted is None or _equal(request.cookies.get(_cookie_name(request, "access"), ""), wanted):
            return None
        query = parse_qsl(urlsplit(str(request.url)).query, keep_blank_values=True)
        if request.method == "GET" and any(key == "token" and _equal(value, wanted) for key, value in query):
            rest = urlencode([pair for pair in query if pair[0] != "token"])
            answer = RedirectResponse(request.url.path + (f"?{rest}" if rest else ""), 303)
            answer.set_cookie(_cookie_name(request, "access"), wanted, httponly=True, samesite="lax")
            return answer
        return PlainTextResponse("Access needs the address with ?token=... that the server printed.\n", 401)

    def _has_room(self, client: str) -> bool:
        """A bucket for each address that fills with time."""
        now = time.monotonic()
        bucket = self._buckets.setdefault(client, _Bucket(self._rules.burst, now))
        self._buckets.move_to_end(client)
        while len(self._buckets) > 1000:
            self._buckets.popitem(last=False)
        bucket.left = min(self._rules.burst, bucket.left + (now - bucket.at) * self._rules.rate)
        bucket.at = now
        if bucket.left < 1:
            return False
        bucket.left -= 1
        return True

    # ---- what goes through -------------------------------------------------------------------------------------

    def _bounded(self, receive: Receive) -> Receive:
        taken = 0

        async def bounded() -> Message:
            nonlocal taken
            message = await receive()
            taken += len(message.get("body", b""))
            if taken > self._rules.most_bytes:  # no length was given, or a wrong one
                raise InvalidInput(f"at most {self._rules.most_bytes} bytes are taken")
            return message

        return bounded

    def _with_headers(self, send: Send, new_cookie: str | None) -> Send:
        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
                if new_cookie:
                    headers.append("set-cookie", f"{new_cookie}; Path=/; HttpOnly; SameSite=Lax")
            await send(message)

        return sending


def csrf_of(request: Request) -> str:
    """The token that a form of this visitor must carry."""
    return str(request.state.csrf)


def checked_form(request: Request, form: Iterable[tuple[str, object]]) -> dict[str, str]:
    """The fields of a form that one of our pages sent. Raises InvalidInput where it is not ours."""
    found = {key: value for key, value in form if isinstance(value, str)}
    if not _equal(found.pop(CSRF_FIELD, ""), request.cookies.get(_cookie_name(request, "csrf"), "")):
        raise InvalidInput("this form is not from this visit", hint="load the page again; what was saved is kept")
    return found


def _same_origin(request: Request) -> bool:
    """Browsers name the origin of every write; who names none is no browser, and has no cookies to misuse."""
    origin = request.headers.get("origin")
    if origin is not None:
        return origin.lower() == f"http://{request.headers.get('host', '').lower()}"
    return request.headers.get("sec-fetch-site", "none") in ("none", "same-origin")


def _is_visit(request: Request) -> bool:
    """A page of another site may link here, but not load pieces of us: each costs a query."""
    elsewhere = request.headers.get("sec-fetch-site", "none") not in ("none", "same-origin")
    return not elsewhere or request.headers.get("sec-fetch-mode") == "navigate"


def _cookie_name(request: Request, what: str) -> str:
    """Cookies are shared by all ports of a host; each of our servers there has its own."""
    return f"localsim_{what}_{request.headers.get('host', '').rpartition(':')[2]}"


def _equal(given: str, wanted: str) -> bool:
    return bool(wanted) and hmac.compare_digest(given.encode(), wanted.encode())
