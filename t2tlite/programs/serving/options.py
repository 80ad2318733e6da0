"""The options of t2t-serve, whose fields are flags, and limits without a flag."""

import dataclasses
import ipaddress
import re
import urllib.parse

from t2tlite.checked_fields import CheckedFields, checked_field
from t2tlite.decoding.engine import TENSORFLOW

MAX_BODY_BYTES = 1 << 20  # of a request
# of all requests whose bodies are being received and parsed
MAX_BODIES_BYTES = 1 << 26
# the longest answers are pages of attention
MAX_ANSWER_BYTES = 1 << 25
MAX_TREE_DEPTH = 200  # of a tree as nested lists
MAX_BEAM_SIZE = 16
# of a request: each takes one or two kilobytes until the request is answered
MAX_HYPOTHESES = 20_000
# inline tags of a request times its translations: each takes about 10 microseconds
MAX_PLACED_TAGS = 20_000
# A search cannot be interrupted. Its time grows with its steps, about one for each
# source token, and with the cost of a step.
MAX_SERVED_TOKENS = 512  # source tokens of a sentence to search
MAX_SEARCH_TOKENS = 2048  # source tokens of a sentence times beam size
# Attention weights of a sentence and its translation: the base model has as many for
# 166 tokens each. A page of them has 11 MB.
MAX_ATTENTION_WEIGHTS = 4_000_000
MAX_ATTENTION_QUEUE = 8  # requests for attention that wait; one is computed at a time

ALLOWED_HOST = re.compile(r"(\*\.)?[\w.-]+(:\d+)?|\*|\[[\w:.]+\](:\d+)?")
ORIGIN = re.compile(r"([\w.+-]+)://([\w.-]+|\[[\w:.]+\])(:\d+)?")
DEFAULT_PORTS = {"http": ":80", "https": ":443"}


def host_name(host: str) -> str:
    """The name or address in a Host header, as every spelling of it is compared: in
    lower case and ASCII, without a port, brackets and a final dot; empty if there is
    none.
    """
    try:
        name = urllib.parse.urlsplit(f"//{host}").hostname or ""
        return name.removesuffix(".").encode("idna").decode()
    except ValueError:
        return ""


def is_address(name: str) -> bool:
    """Whether a name is an IP address."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _allowed_host(text: str) -> str:
    """An entry of --allowed_hosts as `host_name` has it."""
    if not ALLOWED_HOST.fullmatch(text.strip()):
        raise ValueError(
            "allowed_hosts must be names such as translate.example.org or"
            f" *.example.org, or * for any. Received: {text!r}. Leave out scheme and"
            " path."
        )
    return host_name(text.strip())


def _origin(text: str) -> str:
    """An origin as browsers send it, without the default port."""
    origin = text.strip().lower().removesuffix("/")
    if origin in ("*", "null"):
        return origin
    match = ORIGIN.fullmatch(origin)
    if match is None:
        raise ValueError(
            "cors_origins must be origins such as https://example.org:8080, or * for"
            f" all. Received: {text!r}. Write scheme and host, and no path."
        )
    scheme, host, port = match.groups(default="")
    origin = f"{scheme}://{host.encode('idna').decode()}{port}"
    return origin.removesuffix(DEFAULT_PORTS.get(scheme, ":"))


@dataclasses.dataclass(frozen=True)
class ServerOptions(CheckedFields):
    """Where the server listens, and what it allows."""

    host: str = checked_field(
        "127.0.0.1", "Address to listen on; 0.0.0.0 for all addresses of this machine."
    )
    port: int = checked_field(
        5000, "Port to listen on; 0 for any free port.", low=0, high=65535
    )
    allowed_hosts: tuple[str, ...] = checked_field(
        (),
        "Names by which clients reach the server, comma-separated, such as"
        " translate.example.org, or *.example.org for all below it; * for any. Ports do"
        " not count. IP addresses, localhost and --host are always allowed.",
    )
    max_characters: int = checked_field(
        20_000,
        "Maximum number of characters in a request; a blank text counts as one.",
        low=1,
    )
    max_texts: int = checked_field(
        1000, "Maximum number of texts or pairs in a request.", low=1
    )
    max_queue: int = checked_field(
        256,
        "Maximum number of waiting requests; further requests are answered with 503.",
        low=1,
    )
    max_connections: int = checked_field(
        1000,
        "Maximum number of connections; a further one closes the one that has made the"
        " server wait for longest.",
        low=1,
    )
    timeout_s: float = checked_field(
        60.0,
        "Seconds after which a request is answered with 504.",
        low=0.001,
        high=86400,
    )
    api_key: str = checked_field(
        "",
        "Key that requests must have: the field api_key, or Authorization: Bearer KEY.",
    )
    cors_origins: tuple[str, ...] = checked_field(
        (),
        "Web sites whose pages may send requests, comma-separated, such as"
        " https://example.org; * for all.",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        hosts = tuple(map(_allowed_host, self.allowed_hosts))
        object.__setattr__(self, "allowed_hosts", hosts)
        origins = tuple(map(_origin, self.cors_origins))
        object.__setattr__(self, "cors_origins", origins)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ServedRunOptions(CheckedFields):
    """Which runs are served, and how they decode."""

    runs: tuple[str, ...]
    # a pair such as en-de for each run, or with tags, en-de:<2de>, for the only one; by
    # default what the runs record
    languages: tuple[str, ...] = ()
    checkpoint_path: str | None = None
    decode_hparams: str = ""  # changes to the problems' decoding defaults
    engine: str = TENSORFLOW
    quantization: str | None = None  # of CTranslate2's weights; by default float32


@dataclasses.dataclass(frozen=True)
class ConnectionLimits:
    """What all connections may cost, and how long the server waits for a client."""

    connections: int = 1000
    unsent_bytes: int = 1 << 28  # of answers that are not read
    head_s: float = 10.0  # to send a head, from the connection or the last answer
    sending_s: float = 300.0  # to read an answer
