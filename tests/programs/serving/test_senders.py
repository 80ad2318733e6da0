"""Who may send requests: hosts, other sites' pages, damaged headers, API keys."""

import re
import socket
from pathlib import Path

import httpx
import pytest
from running import running, served
from starlette.exceptions import HTTPException

from t2tlite.programs.serving.options import ServerOptions
from t2tlite.programs.serving.requests import check_sender, is_known_host
from t2tlite.programs.serving.service import Service

REPOSITORY = Path(__file__).resolve().parents[3]
SENTENCE = "red cat sees dog"
MULTIPART = "multipart/form-data; boundary=x"


@pytest.mark.parametrize(
    ("host", "headers", "status"),
    [
        ("localhost:5000", {}, 0),
        ("192.168.1.2:5000", {}, 0),
        ("[::1]:5000", {}, 0),
        ("evil.example", {}, 400),
        ("127.0.0.1.evil.example:5000", {}, 400),
        ("localhost:5000", {"origin": "http://localhost:5000"}, 0),
        ("localhost", {"origin": "https://friend.example"}, 0),
        ("localhost", {"origin": "https://evil.example"}, 403),
        ("localhost", {"origin": "null"}, 403),
        # what is not an origin
        ("localhost", {"origin": "http://["}, 403),
        ("localhost", {"origin": "localhost"}, 403),
        ("localhost", {"origin": ""}, 403),
        ("localhost", {"origin": "http://localhost/"}, 403),
        ("localhost", {"sec-fetch-site": "no such value"}, 403),
        ("localhost", {"sec-fetch-site": "none"}, 0),
        ("localhost", {"sec-fetch-site": "cross-site"}, 403),
        ("LOCALHOST", {"origin": "https://localhost"}, 0),
        ("localhost", {"origin": "http://localhost:81"}, 403),
        ("localhost", {"origin": "ftp://localhost"}, 403),
        # a proxy that sends the server's own address as Host
        ("127.0.0.1", {"origin": "http://mt.example.org"}, 403),
        ("127.0.0.1", {"origin": "https://mt.example.org", "sec-fetch-site": "same-origin"}, 0),
    ],
)  # fmt: skip
def test_requests_of_other_sites_are_refused(host, headers, status):
    options = ServerOptions(
        allowed_hosts=("mt.example.org",), cors_origins=("https://friend.example",)
    )
    sent = httpx.Headers({"host": host, **headers})
    if not status:
        check_sender(sent, options)
        return
    with pytest.raises(
        HTTPException, match=r"does not know the host|Only sites in --cors_origins may"
    ) as refused:
        check_sender(sent, options)
    assert refused.value.status_code == status


@pytest.mark.parametrize(
    ("allowed", "host", "is_known"),
    [
        ("MT.example.org", "mt.EXAMPLE.org:5000", True),
        (" my_host ", "my_host:80", True),
        ("*.example.org", "mt.example.org:80", True),
        ("*.example.org", "example.org", False),
        ("*.example.org", "evilexample.org", False),
        ("mt.example.org", "[2001:db8::2]:5000", True),
        ("t2tlite", "localhost:5000", True),
        ("t2tlite", "0.0.0.0:5000", True),
        ("t2tlite", "evil.example:t2tlite", False),
        ("*", "any.example:1", True),
    ],
)
def test_hosts_that_the_server_knows(allowed, host, is_known):
    options = ServerOptions(allowed_hosts=(allowed,))
    assert is_known_host(host, options) == is_known


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("allowed_hosts", ["https://a.org", "a.org/b", "", "a b", "a.org:5000", "ä.org"], "must be in ASCII"),
        ("cors_origins", ["a.org", "https://a.org/page", "https://*.org", "", "https://ä.org", "https://a.org:443"], "must be in ASCII"),
    ],
)  # fmt: skip
def test_what_would_match_nothing_is_refused(name, values, message):
    for value in values:
        with pytest.raises(ValueError, match=f"{name} {message}"):
            ServerOptions(**{name: (value,)})


@pytest.mark.parametrize(
    ("given", "origin"),
    [
        ("https://Friend.example/", "https://friend.example"),
        ("http://friend.example:8080", "http://friend.example:8080"),
        ("http://[2001:DB8::1]:81/", "http://[2001:db8::1]:81"),
        ("moz-extension://a-b", "moz-extension://a-b"),
        ("null", "null"),
    ],
)
def test_origins_are_read_as_browsers_send_them(given, origin):
    options = ServerOptions(cors_origins=(given,))
    assert options.cors_origins == (origin,)
    check_sender(httpx.Headers({"host": "localhost", "origin": origin}), options)


def test_documented_nginx_lets_the_pages_own_posts_through(translator):
    """What nginx sends: without a line of its configuration for it, Host is that of
    proxy_pass. Over plain HTTP a browser sends Origin, and no Sec-Fetch-Site.
    """
    text = (REPOSITORY / "docs" / "operation.md").read_text(encoding="utf-8")
    (location,) = re.findall(
        r"^location /mt/ \{.*?\n(.*?)^\}", text, re.DOTALL | re.MULTILINE
    )
    lines = dict(
        re.findall(r"^ +proxy_set_header (\S+) (\S+);", location, re.MULTILINE)
    )
    public = "translate.example.org:8080"
    variables = {"$http_host": public, '""': "close"}
    sent = {"Host": re.search(r"proxy_pass http://(\S+)/;", location)[1]}
    sent |= {name: variables[value] for name, value in lines.items()}
    hosts = ("translate.example.org",)
    with running([served(translator)], allowed_hosts=hosts) as server:
        for origin, status in ((f"http://{public}", 200), ("http://evil.example", 403)):
            headers = {**sent, "Origin": origin}
            for path in ("/translate", "/attention.html"):
                response = server.post(path, {"q": SENTENCE}, headers=headers)
                assert response.status_code == status


def test_request_of_an_unknown_host_is_not_computed(server):
    response = server.post(
        "/translate", {"q": SENTENCE}, headers={"Host": "evil.example"}
    )
    assert response.status_code == 400
    assert (
        "The server does not know the host 'evil.example'." in response.json()["error"]
    )
    assert server.get("/health", headers={"Host": "evil.example"}).status_code == 200


HEADERS = {
    "Origin": (b"http://[", b"http://[::1", b"[", b"\xff", b"null", b"://", b"x" * 9000),
    "Host": (b"[", b"[::1", b"]", b":", b"localhost:x", b"\xff", b"a b", b"@", b"1.2.3"),
    "Sec-Fetch-Site": (b"[", b"\xff", b"Same-Origin"),
    "Authorization": (b"[", b"\xff", b"Bearer", b"Bearer \xff", b"Basic x", b"\x80 "),
    "Content-Type": (
        b"[",
        b"\xff",
        b"application/json; charset=[",
        b"multipart/form-data",
        b"multipart/form-data; boundary=\xff",
        b"multipart/form-data; boundary=" + b"x" * 5000,
    ),
    "Content-Length": (b"[", b"9" * 5000, b"-1", b"+3", b"0x9", b"1, 2"),
}  # fmt: skip


@pytest.mark.parametrize("name", HEADERS)
def test_damaged_header_is_no_failure_of_the_server(translator, name):
    """It has a status below 500, also where a key is needed that it does not have."""
    body = b'{"q": "red cat", "source": "en", "target": "de"}'
    usual = {"Host": b"localhost", "Content-Type": b"application/json"}
    usual["Content-Length"] = str(len(body)).encode()
    with running([served(translator)], api_key="sesame") as server:
        for value in HEADERS[name]:
            for path in (b"/translate", b"/attention.html", b"/nothing", b"/"):
                fields = {**usual, name: value}
                lines = [b"POST " + path + b" HTTP/1.1"]
                lines += [key.encode() + b": " + fields[key] for key in fields]
                with socket.create_connection(("127.0.0.1", server.port), 60) as sent:
                    sent.sendall(b"\r\n".join([*lines, b"", body]))
                    status = sent.recv(12)
                assert re.fullmatch(rb"HTTP/1.1 4\d\d?", status), (value, path, status)
        assert server.get("/ready").status_code == 200


def test_pages_are_framed_only_by_sites_that_may_send_requests(server, translator):
    """A page in a frame would translate the text of its address."""
    usual = "frame-ancestors 'self'"
    for path in ("/", "/docs", "/health", "/nothing"):
        assert server.get(path).headers["content-security-policy"] == usual
    origins = ("https://friend.example",)
    with running([served(translator)], cors_origins=origins) as friendly:
        policy = friendly.get("/").headers["content-security-policy"]
    assert policy == f"{usual} https://friend.example"


def test_api_key_of_any_letters_is_checked_before_the_body(translator):
    with running([served(translator)], api_key="schlüssel") as keyed:
        for key, status in (("schlüssel", 413), ("schlussel", 403)):
            header = f"Bearer {key}".encode()
            response = keyed.send(
                "/translate", b"x" * 2_000_000, MULTIPART, Authorization=header
            )
            assert response.status_code == status


def test_api_key_of_a_file_or_of_the_environment(tmp_path, monkeypatch):
    path = tmp_path / "key"
    path.write_bytes(b"\xef\xbb\xbfsesame\r\n")  # as Windows writes it
    monkeypatch.setenv("T2TLITE_API_KEY", "open\n")
    assert Service(ServerOptions()).api_key == "open"
    assert Service(ServerOptions(api_key="flag")).api_key == "flag"
    assert Service(ServerOptions(api_key_file=str(path))).api_key == "sesame"
    for content, flag in (("", ""), ("two\nlines", ""), ("sesame", "flag")):
        path.write_text(content, encoding="utf-8")
        with pytest.raises(ValueError, match="api_key_file must hold one line"):
            Service(ServerOptions(api_key=flag, api_key_file=str(path)))
    with pytest.raises(FileNotFoundError):
        Service(ServerOptions(api_key_file=str(tmp_path / "absent")))
