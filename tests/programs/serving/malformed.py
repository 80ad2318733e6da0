"""Bodies that no endpoint can answer, for the tests and for
benchmarks/serving_load.py.
"""

MALFORMED = (
    b"", b"{", b"[]", b"null", b"1e999", b'{"q": 1}', b'{"q": "\\ud800"}', b'{"q": "\xff"}', b'{"q": [["a"]]}',
    b'{"q": "a", "beam_size": 1e400}', b'{"q": "a", "alternatives": -1}', b'{"q": "a", "alpha": "x"}',
    b"[" * 50_000, b'{"q": ' + b'{"q": ' * 5_000, b'{"q": "a", "source": "xx"}', b'{"q": "a", "alternatives": 99999}',
    b'{"q": "a", "beam_size": 1' + b"0" * 5_000 + b"}", b"\x00\x01\x02", b'{"q": "' + b"a" * 100_000 + b'"}',
    b'{"q": null}', b'{"q": true, "source": [], "target": {}}', b'{"q": "a", "translation": [["a"]]}', b"q=a&source=en&target=%ff",
)  # fmt: skip
PATHS = ("/translate", "/attention", "/attention.html", "/detect", "/nothing")
