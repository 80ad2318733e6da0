"""The field's small translation tasks, from TED talks: IWSLT 2014 German-English and
IWSLT 2015 English-Vietnamese.
"""

import dataclasses
import functools
import re
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from t2tlite import registry
from t2tlite.data.problem import option
from t2tlite.files import text_files
from t2tlite.problems.corpus import Corpus, FilePair

NMT = "https://nlp.stanford.edu/projects/nmt"
AS_SPOKEN = "raw"
MOSES_TEXT = "lc.tok"
# the splits of IWSLT 2014, as the papers that report it make them
ARCHIVE = "IWSLT 2014: wit3.fbk.eu/de-en.tgz"
DEV_INTERVAL = 23  # every 23rd training pair is of dev
TEST_SETS = (
    "TED.dev2010",
    "TEDX.dev2012",
    "TED.tst2010",
    "TED.tst2011",
    "TED.tst2012",
)
MAX_TOKENS = 175  # of a side of a training pair
MAX_RATIO = 1.5  # of the lengths of its sides
# lines of the training files that are text; other lines with a tag are not
TITLE = re.compile(r"</?(?:title|description)>")
OTHER_TAG = re.compile(r"\s*<[a-z]")


@registry.register_problem
@dataclasses.dataclass(frozen=True)
class Iwslt14Deen(Corpus):
    """IWSLT 2014 German-English, from the files of its archive in --tmp_dir: 160,000
    pairs of TED talks.

    `--tmp_dir` holds what de-en.tgz unpacks to, in any folder. As in the papers that
    report this task, pairs with a side of more than 175 words, or 1.5 times as long as
    the other, are left out; every 23rd pair is of dev; the test set is the dev and test
    sets of 2010 to 2012.
    """

    vocab_size: int = 10000
    text: str = option(
        MOSES_TEXT,
        "The form of the text: lc.tok, tokenised by Moses's rules and in lower case, as"
        " papers score it (with --tokenize=none); raw, as it was written.",
        choices=(MOSES_TEXT, AS_SPOKEN),
    )

    source_language: ClassVar[str] = "de"
    target_language: ClassVar[str] = "en"

    def corpora(self) -> dict[str, dict[str, str]]:
        training = {"train.tags.de-en.{}": ARCHIVE}
        tests = [f"IWSLT14.{name}.de-en.{{}}.xml" for name in TEST_SETS]
        return {
            "train": training,
            "dev": training,
            "test": dict.fromkeys(tests, ARCHIVE),
        }

    def read(self, split: str, files: Sequence[FilePair]) -> Iterator[tuple[str, str]]:
        is_test = split == "test"
        pairs = _test_pairs(files) if is_test else _talk_pairs(files[0])
        number = 0
        for source, target in pairs:
            tokens = _tokens(source, "de", is_test), _tokens(target, "en", is_test)
            if not is_test:
                if not _is_clean(*tokens):
                    continue
                number += 1
                if (number % DEV_INTERVAL == 0) != (split == "dev"):
                    continue
            yield (source, target) if self.text == AS_SPOKEN else tokens


@registry.register_problem
@dataclasses.dataclass(frozen=True)
class Iwslt15Envi(Corpus):
    """IWSLT 2015 English-Vietnamese, from train, tst2012 (dev) and tst2013 (test) in
    --tmp_dir: 133,317 pairs of TED talks.

    The files are those of nlp.stanford.edu/projects/nmt or of the repository
    stefan-it/nmt-en-vi: `train.en`, `train.vi` and so on, in one folder, tokenised.
    """

    source_language: ClassVar[str] = "en"
    target_language: ClassVar[str] = "vi"

    def corpora(self) -> dict[str, dict[str, str]]:
        names = {"train": "train.{}", "dev": "tst2012.{}", "test": "tst2013.{}"}
        return {split: {name: NMT} for split, name in names.items()}


def _talk_pairs(paths: FilePair) -> Iterator[tuple[str, str]]:
    """The titles, descriptions and sentences of the training files."""
    for source, target in text_files.read_parallel(paths[:1], paths[1:]):
        source = TITLE.sub("", source)
        if not OTHER_TAG.match(source):
            yield source.strip(), TITLE.sub("", target).strip()


def _test_pairs(test_sets: Sequence[FilePair]) -> Iterator[tuple[str, str]]:
    for paths in test_sets:
        sources, targets = (list(text_files.read_segments(path)) for path in paths)
        counts = {f"{paths[0]}": len(sources), f"{paths[1]}": len(targets)}
        advice = "Check that both are from the same archive."
        text_files.check_line_counts(counts, advice, unit="segments")
        yield from zip(sources, targets, strict=True)


def _is_clean(source: str, target: str) -> bool:
    """Whether a pair of tokenised sentences is kept, by Moses's clean-corpus-n.perl
    with these limits.
    """
    shorter, longer = sorted((len(source.split()), len(target.split())))
    return shorter >= 1 and longer <= MAX_TOKENS and longer <= MAX_RATIO * shorter


def _tokens(text: str, language: str, is_test: bool) -> str:
    """Tokenised by Moses's tokenizer.perl, which writes `&` and quotes as entities, and
    in lower case.
    """
    if is_test:
        text = text.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
    tokens: str = _moses(language).tokenize(text, return_str=True)
    return tokens.lower()


@functools.cache
def _moses(language: str) -> Any:
    # slow to import, and few problems need it
    from sacremoses import MosesTokenizer

    return MosesTokenizer(lang=language)
