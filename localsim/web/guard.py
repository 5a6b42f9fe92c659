"""The checks before every page: limits on requests, and who may ask.

Loopback is no protection by itself, because any page that a person has open may send requests to 127.0.0.1. Three
checks follow each other. Limits bounds the requests. Starlette's TrustedHostMiddleware admits only our own names as
Host (against DNS rebinding). Visitors wants our own Origin and a token of our pages for every write, and on a network
an access token for everything.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import secrets
import time
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, quote, urlencode

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, ImmutableMultiDict, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from localsim.errors import InvalidInput
from localsim.web.phrases.table import Phrases, Refused

CSRF_FIELD = "csrf"
HOST = "127.0.0.1"
"""This computer alone."""
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
"""A page that sets its own content-security-policy keeps it."""


@dataclass(frozen=True)
class Access:
    """The limits of a server, and the visitors it admits."""

    hosts: frozenset[str]
    """Names in the Host header, in lower case and without a port."""
    access: str | None = None
    """The token that every visitor must have given once; None on loopback."""
    most_bytes: int = 256_000
    """The largest body of a request."""
    body_seconds: float = 20.0
    """The time in which the whole body of a request must arrive."""
    rate: float = 100.0
    """Requests per second that one address may send in the long run."""
    burst: float = 400.0
    """Requests that one address may send at once."""
    seat_of: Callable[[Request], str] = lambda _: ""
    """The name of the seat that a request comes from; '' for none. Each seat has limits of its own, so that a class
    behind one address does not share those of the address."""
    seat_rate: float = 10.0
    """Requests per second that one seat may send in the long run."""
    seat_burst: float = 60.0
    """Requests that one seat may send at once."""
    entrance: str = ""
    """The page at which a visitor without the access token can give a code; '' for none."""


def hosts_of(host: str) -> frozenset[str]:
    """The names of a server that listens at `host`: that one, and those of loopback.

    A port is not part of it: a browser names the port that it connects to, and a tunnel may have another at its end.
    """
    return frozenset({host.lower(), "127.0.0.1", "localhost", "[::1]"})


def address_of(host: str, path: str, access: str | None) -> str:
    """The address that visitors open, with the access token where there is one."""
    if access is None:
        return f"http://{host}{path}"
    return f"http://{host}{path}{'&' if '?' in path else '?'}token={access}"


def is_loopback(host: str) -> bool:
    """Return True where only this machine can reach `host`."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def shown(host: str) -> str:
    """The host in the form that an address needs."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    return f"[{host}]" if address.version == 6 else host


class Limits:
    """ASGI middleware that bounds the rate of requests and the size and time of bodies, and adds our headers.

    The rate is counted by hand: the package `limits` needs a thread, and more lines to call than these.
    """

    def __init__(self, app: ASGIApp, rules: Access) -> None:
        self._app = app
        self._rules = rules
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse the request, or pass it on with a bounded body."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        body = _Body(Headers(scope=scope), receive, self._rules)
        refusal = self._refusal(Request(scope))
        await (refusal or self._app)(scope, body.receive, _changing(send, body.add_headers))

    def _refusal(self, request: Request) -> Response | None:
        if not self._has_room(request):
            return _plain(request, "guard.many", 429, {"retry-after": "2"})
        length = request.headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > self._rules.most_bytes:
            return PlainTextResponse(f"A request may have at most {self._rules.most_bytes} bytes.\n", 413)
        return None

    def _has_room(self, request: Request) -> bool:
        """Take one request from the bucket of a seat or an address, which fills up with time."""
        now, rules = time.monotonic(), self._rules
        seat = rules.seat_of(request)
        client = f"seat {seat}" if seat else visitor_of(request)
        rate, burst = (rules.seat_rate, rules.seat_burst) if seat else (rules.rate, rules.burst)
        bucket = self._buckets.setdefault(client, _Bucket(burst, now))
        self._buckets.move_to_end(client)
        while len(self._buckets) > 1000:
            self._buckets.popitem(last=False)
        bucket.left = min(burst, bucket.left + (now - bucket.at) * rate)
        bucket.at = now
        if bucket.left < 1:
            return False
        bucket.left -= 1
        return True


class Allowance:
    """How often each visitor may do something in a time; the others do not feel it when one has used it up."""

    def __init__(self, most: int, seconds: float) -> None:
        self._most, self._seconds = most, seconds
        self._done: OrderedDict[str, deque[float]] = OrderedDict()

    def is_left(self, visitor: str) -> bool:
        """Return True if the visitor may do it once more."""
        times = self._done.get(visitor) or deque[float]()
        return len(times) < self._most or time.monotonic() - times[0] >= self._seconds

    def count(self, visitor: str) -> None:
        """Remember that the visitor did it."""
        self._done.setdefault(visitor, deque(maxlen=self._most)).append(time.monotonic())
        self._done.move_to_end(visitor)
        while len(self._done) > 1000:
            self._done.popitem(last=False)


@dataclass
class _Bucket:
    left: float
    at: float = field(default_factory=time.monotonic)


class _Body:
    """The body of one request, received within the limits."""

    def __init__(self, headers: Headers, receive: Receive, rules: Access) -> None:
        self._receive = receive
        self._rules = rules
        self._bytes = 0
        self._deadline = time.monotonic() + rules.body_seconds
        self.pending = "transfer-encoding" in headers or headers.get("content-length", "0") != "0"
        """True until the whole body has arrived."""

    async def receive(self) -> Message:
        """The next message. Raises HTTPException where the body takes too long, InvalidInput where it is too large."""
        if not self.pending:
            return await self._receive()  # waits for the end of the connection, for as long as the answer takes
        try:
            message = await asyncio.wait_for(self._receive(), self._deadline - time.monotonic())
        except TimeoutError:
            raise HTTPException(408, "The request did not arrive in time.") from None
        self.pending = bool(message.get("more_body", False))
        self._bytes += len(message.get("body", b""))
        if self._bytes > self._rules.most_bytes:  # the request gave no length, or a wrong one
            raise InvalidInput(f"a request may have at most {self._rules.most_bytes} bytes")
        return message

    def add_headers(self, headers: MutableHeaders) -> None:
        """Add our headers to the answer."""
        for name, value in _HEADERS.items():
            headers.setdefault(name, value)
        if self.pending:  # otherwise the rest of the body would keep the connection open without limit
            headers["connection"] = "close"


def _changing(send: Send, change: Callable[[MutableHeaders], None]) -> Send:
    """Return a `send` that changes the headers of an answer."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            change(MutableHeaders(scope=message))
        await send(message)

    return sending


class Visitors:
    """ASGI middleware that admits our own pages and those who have the access token, and gives out the CSRF token.

    asgi-csrf is not used: its cookie parser loses our token after a cookie of another program that it cannot read, and
    it answers a form that is not UTF-8, or a multipart form without a boundary, with status 500.
    """

    def __init__(self, app: ASGIApp, rules: Access) -> None:
        self._app = app
        self._access = rules.access
        self._entrance = rules.entrance

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse the visitor, or pass the request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        refusal = self._refusal(request)
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        name = cookie_name(request, "csrf")
        csrf = request.cookies.get(name, "")
        new = None if csrf else secrets.token_urlsafe(18)
        scope.setdefault("state", {})["csrf"] = csrf or new
        cookie = f"{name}={new}; Path=/; HttpOnly; SameSite=Lax"
        await self._app(
            scope, receive, _changing(send, lambda headers: headers.append("set-cookie", cookie)) if new else send
        )

    def _refusal(self, request: Request) -> Response | None:
        if not (_same_origin(request) if request.method not in _SAFE_METHODS else _is_visit(request)):
            return _plain(request, "guard.foreign", 403)
        wanted = self._access
        if wanted is None or equal(request.cookies.get(cookie_name(request, "access"), ""), wanted):
            return None
        if self._entrance and (request.scope["path"] == self._entrance or request.scope["path"].startswith("/static/")):
            return None
        query = parse_qsl(request.url.query, keep_blank_values=True)
        if request.method == "GET" and any(key == "token" and equal(value, wanted) for key, value in query):
            rest = urlencode([pair for pair in query if pair[0] != "token"])
            path = quote("/" + request.scope["path"].lstrip("/\\"))  # two slashes at the start would name another host
            answer = RedirectResponse(path + (f"?{rest}" if rest else ""), 303)
            return with_access(answer, request, wanted)
        if self._entrance and request.method == "GET":
            return RedirectResponse(self._entrance, 303)
        return _plain(request, "guard.token", 401)


def _plain(request: Request, phrase: str, status: int, headers: Mapping[str, str] | None = None) -> Response:
    t: Phrases = request.app.state.phrases
    return PlainTextResponse(f"{t.plain(phrase)}\n", status, headers)


def with_access(answer: RedirectResponse, request: Request, access: str) -> RedirectResponse:
    """Let the visitor who gets this answer in from now on."""
    answer.set_cookie(cookie_name(request, "access"), access, httponly=True, samesite="lax")
    return answer


def csrf_of(request: Request) -> str:
    """The token that a form of this visitor must carry."""
    return str(request.state.csrf)


SentForm = ImmutableMultiDict[str, str]
"""The fields of a sent form; of a field that was sent twice, `get` gives the last value."""
Act = Callable[[Request, SentForm], Response]


def checked_form(request: Request, sent: Iterable[tuple[str, object]]) -> SentForm:
    """The fields of a form from one of our pages. Raises Refused for a form from elsewhere."""
    form = ImmutableMultiDict([(key, value) for key, value in sent if isinstance(value, str)])
    if not equal(form.get(CSRF_FIELD, ""), request.cookies.get(cookie_name(request, "csrf"), "")):
        raise Refused("old_form")
    return form


def posted(act: Act) -> Callable[[Request], Awaitable[Response]]:
    """Make a handler of forms: the form is checked, and `act` may wait in a thread of its own."""

    async def handle(request: Request) -> Response:
        form = checked_form(request, (await request.form()).multi_items())
        return await run_in_threadpool(act, request, form)

    return handle


def number_in(form: SentForm, field: str) -> int:
    """The number in a field of a form; -1 where there is none."""
    text = form.get(field, "")
    return int(text[:6]) if text.isascii() and text.isdecimal() else -1


def _same_origin(request: Request) -> bool:
    """Browsers name the origin of a write; a program that names none is no browser and has no cookies to misuse."""
    origin = request.headers.get("origin")
    if origin is not None:
        return origin.lower() == f"http://{request.headers.get('host', '').lower()}"
    return request.headers.get("sec-fetch-site", "none") in ("none", "same-origin")


def _is_visit(request: Request) -> bool:
    """A page of another site may link here, but not load parts of our pages: each costs a query."""
    elsewhere = request.headers.get("sec-fetch-site", "none") not in ("none", "same-origin")
    return not elsewhere or request.headers.get("sec-fetch-mode") == "navigate"


def cookie_name(request: Request, what: str) -> str:
    """A cookie name for this port: browsers share cookies between all ports of a host."""
    return f"localsim_{what}_{request.headers.get('host', '').rpartition(':')[2]}"


def visitor_of(request: Request) -> str:
    """The address that a request comes from."""
    return request.client.host if request.client else ""


def equal(given: str, wanted: str) -> bool:
    """Compare a secret in a time that does not depend on what was given; nothing equals an empty secret."""
    return bool(wanted) and hmac.compare_digest(given.encode(), wanted.encode())
