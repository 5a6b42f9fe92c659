"""The server of the pages refuses what it must: foreign hosts and origins, large bodies, odd addresses and forms."""

from __future__ import annotations

import re
import shlex
import socket
import time
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote, urljoin, urlsplit

import click
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from localsim.cli import cli
from localsim.errors import InvalidInput
from localsim.store.database import Store
from localsim.web import serve
from tests.test_web import client, made
from tests.web_server import BASE, HOSTILE, client_of, field, serving

__all__ = ["client", "made"]


@pytest.fixture
def token(client: TestClient) -> str:
    """What the forms of a visit must have."""
    return field(client.get("/play").text, "csrf")


# ---- guard ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host",
    ["evil.example:7580", "evil.example", "localhost.evil.example:7580", "evil.localhost:7580", "0.0.0.0:7580", "[::2]",
     "127.0.0.1.", "127.0.0.1:7580@evil.example", "*"],
)  # fmt: skip
def test_a_foreign_host_is_refused(client: TestClient, host: str) -> None:
    answer = client.get("/", headers={"host": host})
    assert answer.status_code == 400 and "Runs" not in answer.text and not answer.cookies
    assert "default-src 'none'" in answer.headers["content-security-policy"]


@pytest.mark.parametrize("host", ["127.0.0.1:7580", "LOCALHOST:7580", "[::1]:7580", "127.0.0.1:9999"])
def test_own_names_are_served_also_through_a_tunnel_with_another_port(client: TestClient, host: str) -> None:
    assert client.get("/", headers={"host": host}).status_code == 200
    foreign = {"host": host, "origin": "http://127.0.0.1:1111"}
    assert client.post("/play", headers=foreign, data={"scenario": "x"}).status_code == 403


@pytest.mark.parametrize(
    "headers", [{"origin": "http://evil.example"}, {"origin": "null"}, {"sec-fetch-site": "cross-site"},
                {"origin": "http://127.0.0.1:7581"}]
)  # fmt: skip
def test_a_foreign_origin_cannot_write(client: TestClient, headers: dict[str, str]) -> None:
    assert client.post("/play", headers=headers, data={"scenario": "x"}).status_code == 403


def test_other_sites_may_link_here_but_not_load_pieces(client: TestClient) -> None:
    foreign = {"sec-fetch-site": "cross-site"}
    assert client.get("/sql?q=SELECT+1", headers={**foreign, "sec-fetch-mode": "no-cors"}).status_code == 403
    assert client.get("/", headers={**foreign, "sec-fetch-mode": "navigate"}).status_code == 200


def test_cookies_of_other_programs_on_this_machine_do_not_matter(client: TestClient) -> None:
    page = client.get("/play")
    name = "localsim_csrf_7580"
    cookie = f'theme={{"a": 1}}; v=a b; {name}={client.cookies[name]}'
    data = {"csrf": field(page.text, "csrf"), "scenario": "no-such-scenario"}
    answer = client.post("/play", data=data, headers={"cookie": cookie})
    assert "this cannot be chosen" in answer.text


def test_a_form_without_its_token_is_refused(client: TestClient) -> None:
    client.get("/play")
    for data in ({"scenario": "craigslist_01"}, {"scenario": "craigslist_01", "csrf": "guessed"}):
        answer = client.post("/play", data=data)
        assert answer.status_code == 400 and "not from this visit" in answer.text


def test_bodies_and_rates_are_bounded(made: tuple[Store, str]) -> None:
    with client_of(made[0], most_bytes=1000, rate=0.001, burst=5.0) as client:
        assert client.post("/play", content=b"x" * 2000).status_code == 413
        chunks = (b"csrf=" + b"x" * 500 for _ in range(4))
        sent = client.post("/play", content=chunks, headers={"content-type": "application/x-www-form-urlencoded"})
        assert sent.status_code == 400
        assert [client.get("/sql").status_code for _ in range(4)][-1] == 429


def test_a_server_on_a_network_wants_its_token(made: tuple[Store, str]) -> None:
    with client_of(made[0], access="secret-token") as client:
        assert client.get("/").status_code == 401
        assert client.get("/?token=wrong").status_code == 401
        printed = serve.address_of("127.0.0.1:7580", "/annotate?run=@last", "secret-token")
        assert client.get(printed.removeprefix("http://127.0.0.1:7580")).status_code == 200
        client.cookies.clear()
        first = client.get("/?token=secret-token", follow_redirects=False)
        assert first.status_code == 303 and "token" not in first.headers["location"]
        assert client.get("/").status_code == 200


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(path=st.text("/\\.:@%?#ae\t\u202e", max_size=12).map(lambda text: "/" + quote(text)))
@example(path="//other.site")
@example(path="//other.site/%2e%2e")
@example(path="///other.site")
@example(path="/%5Cother.site")
@example(path="/%2F%2Fother.site")
@example(path="/%09/other.site")
def test_the_access_token_never_leads_to_another_site(made: tuple[Store, str], path: str) -> None:
    with client_of(made[0], access="secret-token") as client:
        answer = client.get(f"{BASE}{path}?token=secret-token&a=1", follow_redirects=False)
    place = answer.headers["location"]
    assert answer.status_code == 303 and place.startswith("/") and not place.startswith(("//", "/\\"))
    assert urlsplit(urljoin(f"{BASE}{path}", place)).netloc == urlsplit(BASE).netloc
    assert place.endswith("?a=1")


def _answer_to(base: str, *parts: bytes, pause: float = 0.0) -> tuple[bytes, float]:
    """Everything that a server sends until it closes the connection, and the seconds until then."""
    begun = time.monotonic()
    with socket.create_connection(urlsplit(base).netloc.split(":"), timeout=20) as connection:
        for part in parts:
            connection.sendall(part)
            time.sleep(pause)
        received = b""
        while more := connection.recv(65536):
            received += more
    return received, time.monotonic() - begun


def test_a_body_that_does_not_arrive_ends_the_connection(made: tuple[Store, str]) -> None:
    with serving(made[0], body_seconds=1.0) as base:
        host = f"Host: {urlsplit(base).netloc}\r\nContent-Type: application/x-www-form-urlencoded\r\n"
        half = f"POST /play HTTP/1.1\r\n{host}Content-Length: 100\r\n\r\ncsrf=".encode()
        answer, seconds = _answer_to(base, half)
        assert answer.startswith(b"HTTP/1.1 408") and b"did not arrive in time" in answer and 0.9 < seconds < 10
        drops = [f"POST /play HTTP/1.1\r\n{host}Transfer-Encoding: chunked\r\n\r\n".encode(), *[b"1\r\nx\r\n"] * 3]
        assert _answer_to(base, *drops, pause=0.2)[0].startswith(b"HTTP/1.1 408")
        for status, request in (("200", "GET /play"), ("404", "POST /no-such-page"), ("405", "POST /sql")):
            half = f"{request} HTTP/1.1\r\n{host}Content-Length: 100\r\n\r\ncsrf=".encode()
            answer, seconds = _answer_to(base, half)
            assert answer.startswith(f"HTTP/1.1 {status}".encode()) and seconds < 4, request


def test_requests_that_do_not_arrive_take_the_place_of_no_other(
    made: tuple[Store, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serve, "_MOST_WAITING", 5)
    with serving(made[0]) as base:
        place = urlsplit(base)
        halves = [socket.create_connection((place.hostname, place.port)) for _ in range(12)]
        for number, half in enumerate(halves):
            half.settimeout(10)
            half.sendall(
                b"GET / HTTP/1.1\r\nHost: x\r\nX: " if number % 2 else b"POST / HTTP/1.1\r\nContent-Length: 9\r\n"
            )
        with suppress(ConnectionResetError):
            assert halves[0].recv(1) == b"", "it has ended"
        assert _answer_to(base, f"GET / HTTP/1.1\r\nHost: {place.netloc}\r\n\r\n".encode())[0].startswith(
            b"HTTP/1.1 200"
        )
        for half in halves:
            half.close()
    monkeypatch.setattr(serve, "_REQUEST_S", 0.5)
    with serving(made[0]) as base:
        answer, seconds = _answer_to(base, b"GET / HTTP/1.1\r\nX: ")
    assert answer == b"" and seconds < 10


def test_headers_forbid_what_the_pages_do_not_need(client: TestClient) -> None:
    headers = client.get("/").headers
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "unsafe-inline" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("path", ["/static/../guard.py", "/static/%2e%2e/guard.py", "/static//etc/passwd", "/static/"])
def test_nothing_but_assets_is_served(client: TestClient, path: str) -> None:
    assert client.get(path).status_code == 404


NOTHING = Store(Path("x"))


@pytest.mark.parametrize("host", ["0.0.0.0", "0", "", "::", "0:0::0", "::ffff:0.0.0.0"])
def test_every_network_at_once_is_refused(host: str) -> None:
    with pytest.raises(InvalidInput, match="every network"):
        serve.check_host(host)


def test_an_address_of_another_machine_is_refused_with_the_reason() -> None:
    for host in ("192.0.2.1", "no-such-name.invalid", "a" * 300):
        with pytest.raises(InvalidInput, match="not an address of this machine"):
            serve.serve(NOTHING, serve.Address(host, 0), "/", print, open_browser=False)


def test_the_commands_for_a_class_are_accepted() -> None:
    """The workshop's page tells an instructor how to serve a room: the options exist and the address is not refused."""
    text = (Path(__file__).parent.parent / "docs" / "workshop.md").read_text(encoding="utf-8")
    text = text.replace("--host ADDRESS", "--host 192.168.1.20")
    commands = re.findall(r"^localsim (.*--host .*)$|`localsim (.*?--host [^`]*)`", text, re.MULTILINE)
    assert commands
    for words in (shlex.split(" ".join(found), comments=True) for found in commands):
        context, command = click.Context(cli), cli
        while isinstance(command, click.Group):
            name, command, words = command.resolve_command(context, words)
            context = click.Context(command, parent=context, info_name=name)
        given = command.make_context(command.name, words).params
        serve.check_host(given["host"])
        assert not serve.is_loopback(given["host"])


def test_only_loopback_without_being_asked() -> None:
    assert serve.is_loopback("127.0.0.1") and serve.is_loopback("::1") and not serve.is_loopback("192.168.1.4")
    with pytest.raises(InvalidInput, match="every network"):
        serve.serve(NOTHING, serve.Address("0.0.0.0", 0), "/", print, open_browser=False)


ANYTHING = st.text(max_size=40) | st.sampled_from(["@last", "@last-9", "-1", "1e9", "%00", "../..", HOSTILE])


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    path=st.sampled_from(
        ["/runs/{}", "/runs/{}/live", "/runs/{}/report", "/episodes/{}", "/episodes/{}/turns/{}", "/annotate/{}/{}",
         "/annotate/{}", "/play/{}/{}", "/play/{}/{}/turns", "/compare", "/sql", "/annotate/begin", "/{}"]
    ),
    parts=st.lists(ANYTHING, min_size=2, max_size=2),
    query=st.dictionaries(
        st.sampled_from("a b q page mode words family item rater task ties run leaks".split()), ANYTHING, max_size=4
    ),
)  # fmt: skip
def test_no_address_breaks_a_page(client: TestClient, path: str, parts: list[str], query: dict[str, str]) -> None:
    filled = path.format(*(quote(part, safe="", errors="replace") for part in parts))
    query = {key: value.encode("utf-8", "replace").decode() for key, value in query.items()}
    assert client.get(filled, params=query).status_code not in (500, 502)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    path=st.sampled_from(["/play", "/annotate/@last/pairs?rater=r", "/annotate/@last/dimensions?rater=r"]),
    fields=st.dictionaries(
        st.sampled_from("scenario role mode against item value begun undo mark.goal kind text turn".split()), ANYTHING
    ),
)
def test_no_form_breaks_a_page(client: TestClient, token: str, path: str, fields: dict[str, str]) -> None:
    item = "" if path == "/play" else field(client.get("/annotate/@last/pairs?rater=r").text, "item")
    fields = {"item": item, "scenario": "no-such"} | fields
    data = {key: value.encode("utf-8", "replace").decode() for key, value in fields.items()}
    answer = client.post(path, data={**data, "csrf": token}, follow_redirects=False)
    assert answer.status_code not in (500, 502)
