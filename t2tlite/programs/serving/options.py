"""The options of t2t-serve, whose fields are flags, and limits without a flag."""

import dataclasses
import os
import re

from t2tlite.checked_fields import (
    CheckedFields,
    checked_field,
    optional_field,
    required_field,
)
from t2tlite.decoding.engine import TENSORFLOW
from t2tlite.files.text_files import read_lines

MAX_BODY_BYTES = 1 << 20  # of a request
MAX_FIELDS = 1000  # of a form
# of all requests whose bodies are being received and parsed
MAX_BODIES_BYTES = 1 << 26
# the longest answers are pages of attention
MAX_ANSWER_BYTES = 1 << 25
MAX_BEAM_SIZE = 16
# of a request: each takes one or two kilobytes until the request is answered
MAX_HYPOTHESES = 20_000
# inline tags of a request times its translations: each takes about 10 microseconds
MAX_PLACED_TAGS = 20_000
# A search cannot be interrupted. Its time grows with its steps, about one for each
# source token, and with the cost of a step.
MAX_SERVED_TOKENS = 512  # source tokens of a sentence to search
MAX_SEARCH_TOKENS = 2048  # source tokens of a sentence times beam size
MAX_TERM_TOKENS = 63  # of the terms of a sentence, together
# of a sentence, or of its translation, whose attention is shown: 160 on both sides are
# 4 million weights of the base model, and a page of 11 MB
MAX_ATTENTION_TOKENS = 160
MAX_ATTENTION_QUEUE = 8  # requests for attention that wait; one is computed at a time

HOST = re.compile(r"[\w.*-]+", re.ASCII)
# browsers leave out a default port
ORIGIN = re.compile(
    r"\*|null|[\w.+-]+://([\w.-]+|\[[\w:.]+\])(:(?!(80|443)$)\d+)?",
    re.ASCII,
)


@dataclasses.dataclass(frozen=True)
class ServerOptions(CheckedFields):
    """Where the server listens, and what it allows."""

    host: str = checked_field(
        "127.0.0.1", "Address to listen on; 0.0.0.0 for all of this machine."
    )
    port: int = checked_field(
        5000, "Port to listen on; 0 for any free port.", low=0, high=65535
    )
    allowed_hosts: tuple[str, ...] = checked_field(
        (),
        "Names by which clients reach the server, comma-separated: mt.example.org, or"
        " *.example.org for all below it. IP addresses, localhost and --host are always"
        " allowed.",
    )
    max_characters: int = checked_field(
        20_000,
        "Maximum number of characters in a request; a blank text counts as one.",
        low=1,
    )
    max_texts: int = checked_field(1000, "Maximum number of texts in a request.", low=1)
    max_queue: int = checked_field(
        256,
        "Maximum number of waiting requests; further ones get 503.",
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
        "Seconds after which a request gets 504.",
        low=0.001,
        high=86400,
    )
    api_key: str | None = optional_field(
        str,
        "Key that requests must have: the field api_key, or Authorization: Bearer KEY.",
    )
    api_key_file: str | None = optional_field(
        str, "File that holds the key; without both flags, T2TLITE_API_KEY has it."
    )
    access_log: bool = checked_field(
        False, "Print a line of JSON for each request, without texts and keys."
    )
    cors_origins: tuple[str, ...] = checked_field(
        (),
        "Sites whose pages may send requests, comma-separated: https://example.org; *"
        " for all.",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self._clean("allowed_hosts", HOST, "mt.example.org")
        self._clean("cors_origins", ORIGIN, "https://example.org")

    def key(self) -> str:
        """The API key of the flag, of the file, or of the environment, or an empty one.
        Raises ValueError or OSError if the file does not hold it.
        """
        if self.api_key_file is None:
            key = self.api_key or os.environ.get("T2TLITE_API_KEY", "")
            return key.strip()
        key = "\n".join(read_lines(self.api_key_file)).strip()
        if self.api_key or len(key.splitlines()) != 1:
            raise ValueError(
                "api_key_file must hold one line, and be given without api_key."
                f" Received: {self.api_key_file}."
            )
        return key

    def _clean(self, name: str, form: re.Pattern[str], example: str) -> None:
        """Writes entries of a field in lower case. Raises ValueError for wrong ones."""
        entries = []
        for text in getattr(self, name):
            entry = text.strip().lower().removesuffix("/")
            if not form.fullmatch(entry):
                message = f"{name} must be in ASCII, such as {example}."
                raise ValueError(f"{message} Received: {text!r}.")
            entries.append(entry)
        object.__setattr__(self, name, tuple(entries))


@dataclasses.dataclass(frozen=True, kw_only=True)
class ServedRunOptions(CheckedFields):
    """Which runs are served, for which languages, and how they decode. The last five
    are flags of other commands too, which say more of them.
    """

    output_dir: tuple[str, ...] = required_field(
        tuple, "Folder of a run to serve; can be given several times."
    )
    languages: tuple[str, ...] = checked_field(
        (),
        "Language pairs in the order of --output_dir: en-de,pt-BR-en; by default those"
        " recorded. One run can serve several by tags, which are put before each"
        " source: 'en-de:<2de>,en-fr:<2fr>'.",
    )
    checkpoint_path: str | None = None
    decode_hparams: str = ""
    quantization: str | None = None
    engine: str = TENSORFLOW
    glossary: str | None = None
