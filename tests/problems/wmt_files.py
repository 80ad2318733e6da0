"""Tiny files under the names of the archives of WMT 2014."""

from pathlib import Path

from t2tlite.files.compression import compressed
from t2tlite.problems.translation import WmtEnde, WmtEnfr

# Where the archives unpack to, in the order in which the corpora are read.
TRAINING = {
    "de": [
        "training/europarl-v7.de-en",
        "commoncrawl.de-en",
        "training/news-commentary-v9.de-en",
    ],
    "fr": [
        "training/europarl-v7.fr-en",
        "commoncrawl.fr-en",
        "training/news-commentary-v9.fr-en",
        "un/undoc.2000.fr-en",
        "giga-fren.release2.fixed",
    ],
}
PROBLEMS = {"de": WmtEnde, "fr": WmtEnfr}


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file, compressed(file, path) as output:
        output.write(text.encode())
    return path


def sgm(kind: str, *segments: str) -> str:
    """An .sgm file as NIST's tools write it: a document a paragraph, a segment a
    line.
    """
    lines = [
        f'<{kind}set setid="newstest2014" srclang="any" trglang="xx">',
        '<doc sysid="ref" docid="1">',
        "<p>",
    ]
    lines += [
        f'<seg id="{number}">{segment}</seg>'
        for number, segment in enumerate(segments, start=1)
    ]
    return "\n".join([*lines, "</p>", "</doc>", f"</{kind}set>", ""])


def unpack(folder: Path, foreign: str) -> list[Path]:
    """Writes tiny files under the archives' names; returns them in reading order."""
    paths = []
    for number, stem in enumerate(TRAINING[foreign]):
        suffix = ".gz" if stem.startswith("giga") else ""
        paths += [
            write(
                folder / f"{stem}.en{suffix}", f"train {number} a\ntrain {number} b\n"
            ),
            write(
                folder / f"{stem}.{foreign}{suffix}",
                f"{foreign} {number} a\n{foreign} {number} b\n",
            ),
        ]
    paths += [
        write(folder / "dev/newstest2013.en", "dev a\n"),
        write(folder / f"dev/newstest2013.{foreign}", f"{foreign} dev a\n"),
    ]
    stem = f"test-full/newstest2014-{foreign}en"
    paths += [
        write(folder / f"{stem}-src.en.sgm", sgm("src", "test &amp; a", "test b")),
        write(
            folder / f"{stem}-ref.{foreign}.sgm",
            sgm("ref", f"{foreign} test &amp; a", f"{foreign} test b"),
        ),
    ]
    return paths
