"""Text files, plain and compressed: lines, pairs, parallel files, and what t2t-bleu makes of
them.
"""

import bz2
import gzip
import lzma

from fuzzing import LINES, damaged_bytes, run_command, survives
from hypothesis import given
from hypothesis import strategies as st

from t2tlite.bin import t2t_bleu
from t2tlite.files.text_files import read_lines, read_parallel, write_lines

TEXT = "\ufeffa cat\tdie Katze\r\nzwei\tdeux\u2028trois\n\n\t\nende\tfin".encode()
PACKED = [
    gzip.compress(TEXT * 5, mtime=0),
    lzma.compress(TEXT * 5),
    bz2.compress(TEXT * 5),
]
ENDINGS = st.sampled_from(["txt", "gz", "xz", "bz2"])


@given(lines=st.lists(LINES), ending=ENDINGS)
def test_written_and_read_again(lines, ending, tmp_path):
    path = tmp_path / f"written.{ending}"
    write_lines(path, lines)
    read = [line.removesuffix("\r").lstrip("\ufeff") for line in lines]
    assert list(read_lines(path)) == read


@given(
    plain=damaged_bytes(TEXT),
    packed=st.sampled_from(PACKED).flatmap(damaged_bytes),
    ending=ENDINGS,
    swap=st.booleans(),
)
def test_damaged_files(plain, packed, ending, swap, tmp_path):
    path = tmp_path / f"damaged.{ending}"
    path.write_bytes(packed if (ending != "txt") != swap else plain)
    survives(lambda: list(read_lines(path)))
    survives(lambda: list(read_parallel([path], [path])))


@given(
    pairs=st.lists(st.tuples(LINES, LINES), max_size=5),
    tokenize=st.sampled_from(["13a", "intl", "zh", "char", "none"]),
    more=st.lists(st.sampled_from(["--lowercase", "--compound_split"])),
)
def test_t2t_bleu(pairs, tokenize, more, tmp_path):
    for side, name in enumerate(("translation", "reference")):
        write_lines(tmp_path / name, [pair[side] for pair in pairs])
    files = [f"--{name}={tmp_path / name}" for name in ("translation", "reference")]
    run_command(t2t_bleu.main, *files, f"--tokenize={tokenize}", *more)
