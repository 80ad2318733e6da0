"""The field's translation tasks: WMT 2014, the paper's (section 5.1), and the small
ones of IWSLT and Multi30k.

All are read from the raw files as they are distributed, in any folder below --tmp_dir.
If no file of WMT 2014 is there, TensorFlow Datasets downloads it.
"""

import contextlib
import dataclasses
import functools
import re
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from t2tlite.data.problem import option
from t2tlite.data.splits import DEV, TEST, TRAIN
from t2tlite.files import text_files
from t2tlite.problems.corpus import TFDS_FOLDER, Corpora, Corpus, FilePair, Pairs
from t2tlite.registry import register_problem

# Each language pair of WMT 2014 has its own test set; that in the folder `test`, of
# another archive, may lack sentences.
WMT_TRAINING: tuple[str, ...] = (
    "europarl-v7.{target}-en.{}",
    "commoncrawl.{target}-en.{}",
    "news-commentary-v9.{target}-en.{}",
)
WMT_FRENCH = ("undoc.2000.fr-en.{}", "giga-fren.release2.fixed.{}")
WMT_TEST = "test-full/newstest2014-{target}en-{side}.{}.sgm"
WMT_SERVER = "https://www.statmt.org"
# to wait for an answer of the server that has the text
NETWORK_SECONDS = 10.0

# the test set of IWSLT 2014, and its other splits, as papers that report it make them
IWSLT14_TESTS = [
    "IWSLT14.TED.dev2010.de-en.{}.xml",
    "IWSLT14.TEDX.dev2012.de-en.{}.xml",
    "IWSLT14.TED.tst2010.de-en.{}.xml",
    "IWSLT14.TED.tst2011.de-en.{}.xml",
    "IWSLT14.TED.tst2012.de-en.{}.xml",
]
DEV_INTERVAL = 23  # every 23rd training pair is of dev
MAX_TOKENS = 175  # of a side of a training pair
MAX_RATIO = 1.5  # of the lengths of its sides
# lines of the training files that are text; other lines with a tag are not
TITLE = re.compile(r"</?(?:title|description)>")
OTHER_TAG = re.compile(r"\s*<[a-z]")

# of Multi30k: split -> name of its files
STEMS = {
    TRAIN: "train",
    DEV: "val",
    TEST: "test_2016_flickr",
    "test_2017_flickr": "test_2017_flickr",
    "test_2017_mscoco": "test_2017_mscoco",
    "test_2018_flickr": "test_2018_flickr",
}


class Wmt14(Corpus):
    """The base class of both language pairs: English is the source."""

    source_language = "en"
    origin = (
        f"{WMT_SERVER}/wmt14/translation-task.html, or an empty --tmp_dir, to download"
        " all through TensorFlow Datasets"
    )
    needed_flags = ()
    training = WMT_TRAINING

    def corpora(self) -> Corpora:
        return {
            TRAIN: self.training,
            DEV: ["newstest2013.{}"],
            TEST: [WMT_TEST],
        }

    def pairs(self, split: str, tmp_dir: Path | None) -> Pairs:
        """Yields one corpus after the other, or the pairs in the order of TensorFlow
        Datasets if no file is there.
        """
        self.check_split(split)
        files = self.find(tmp_dir)
        if files:
            return self.read(split, files[split])
        return self._tfds_pairs(split, tmp_dir)

    def find(self, tmp_dir: Path | None) -> dict[str, list[FilePair]]:
        """The raw files; nothing with TensorFlow Datasets."""
        files, _ = self.search(tmp_dir)
        return super().find(tmp_dir) if any(files.values()) else {}

    def _tfds_pairs(self, split: str, tmp_dir: Path | None) -> Pairs:
        foreign = self.target_language
        name = f"wmt14_translate/{foreign}-en"
        data_dir = None if tmp_dir is None else tmp_dir / TFDS_FOLDER
        try:
            # slow to import, and few users need it
            import tensorflow_datasets as tfds

            _check_network(tfds.builder(name, data_dir=data_dir))
            tfds_split = "validation" if split == DEV else split
            dataset = tfds.load(name, split=tfds_split, data_dir=data_dir)
        except Exception as error:
            # network, checksums, archives, disk: these have no common class
            _, missing = self.search(tmp_dir)
            raise FileNotFoundError(
                f"{missing}\nTensorFlow Datasets could not prepare {name}:"
                f" {type(error).__name__}: {error}"
            ) from error
        # its test set comes from .sgm, whose entities it does not replace
        clean = text_files.unescape if split == TEST else str
        for example in tfds.as_numpy(dataset):
            source = example["en"].decode().removesuffix("\r")
            target = example[foreign].decode().removesuffix("\r")
            yield clean(source), clean(target)


@register_problem
@dataclasses.dataclass(frozen=True)
class WmtEnde(Wmt14):
    """WMT 2014 English-German: 4.5 million pairs, dev newstest2013, test
    newstest2014.
    """

    vocab_size: int = 37000

    target_language = "de"


@register_problem
@dataclasses.dataclass(frozen=True)
class WmtEnfr(Wmt14):
    """WMT 2014 English-French: 36 to 41 million pairs, dev newstest2013, test
    newstest2014.
    """

    vocab_size: int = 32000

    target_language = "fr"
    training = WMT_TRAINING + WMT_FRENCH


def _check_network(builder: Any) -> None:
    """Raises OSError within seconds if the server of WMT's texts cannot be reached,
    where TensorFlow Datasets would try for minutes; unless it has prepared or at least
    downloaded some text.
    """
    downloads = Path(builder.data_dir).parents[2] / "downloads"
    if builder.is_prepared() or any(downloads.rglob("*.INFO")):
        return
    # a server that refuses a request is reachable
    with contextlib.suppress(urllib.error.HTTPError):
        urllib.request.urlopen(WMT_SERVER, timeout=NETWORK_SECONDS).close()


@register_problem
@dataclasses.dataclass(frozen=True)
class Iwslt14Deen(Corpus):
    """IWSLT 2014 German-English, from the files of its archive in --tmp_dir: 160,000
    pairs of TED talks, tokenised by Moses's rules and in lower case, as papers score
    them (with --tokenize=none).

    `--tmp_dir` holds what de-en.tgz unpacks to, in any folder. As in the papers that
    report this task, pairs with a side of more than 175 words, or 1.5 times as long as
    the other, are left out; every 23rd pair is of dev; the test set is the dev and test
    sets of 2010 to 2012.
    """

    vocab_size: int = 10000

    origin = "the archive de-en.tgz of IWSLT 2014 (wit3.fbk.eu)"
    source_language = "de"
    target_language = "en"

    def corpora(self) -> Corpora:
        training = ["train.tags.de-en.{}"]
        return {TRAIN: training, DEV: training, TEST: IWSLT14_TESTS}

    def read(self, split: str, files: list[FilePair]) -> Pairs:
        if split == TEST:
            for paths in files:
                yield from _test_pairs(paths)
            return
        number = 0
        for source, target in _talk_pairs(files[0]):
            if _is_clean(source, target):
                number += 1
                if (number % DEV_INTERVAL == 0) == (split == DEV):
                    yield source, target


def _talk_pairs(paths: FilePair) -> Pairs:
    """The titles, descriptions and sentences of the training files."""
    for source, target in text_files.read_parallel(paths[:1], paths[1:]):
        source = TITLE.sub("", source)
        if not OTHER_TAG.match(source):
            yield _tokens(source, "de"), _tokens(TITLE.sub("", target), "en")


def _test_pairs(paths: FilePair) -> Pairs:
    """The segments of a test set."""
    segments_of = text_files.read_segments
    for segments in text_files.read_parallel(paths[:1], paths[1:], segments_of):
        # the training files have straight apostrophes
        source, target = [segment.replace("’", "'") for segment in segments]
        yield _tokens(source, "de"), _tokens(target, "en")


def _is_clean(source: str, target: str) -> bool:
    """Whether a pair of tokenised sentences is kept, by Moses's clean-corpus-n.perl
    with these limits.
    """
    lengths = len(source.split()), len(target.split())
    shorter, longer = sorted(lengths)
    return shorter >= 1 and longer <= MAX_TOKENS and longer <= MAX_RATIO * shorter


def _tokens(text: str, language: str) -> str:
    """Tokenised by Moses's tokenizer.perl, which writes `&` and quotes as entities, and
    in lower case.
    """
    tokens: str = _moses(language).tokenize(text, return_str=True)
    return tokens.lower()


@functools.cache
def _moses(language: str) -> Any:
    # slow to import, and few problems need it
    from sacremoses import MosesTokenizer

    return MosesTokenizer(lang=language)


@register_problem
@dataclasses.dataclass(frozen=True)
class Iwslt15Envi(Corpus):
    """IWSLT 2015 English-Vietnamese, from train, tst2012 (dev) and tst2013 (test) in
    --tmp_dir: 133,317 pairs of TED talks.

    The files are those of nlp.stanford.edu/projects/nmt or of the repository
    stefan-it/nmt-en-vi: `train.en`, `train.vi` and so on, in one folder, tokenised.
    """

    origin = "https://nlp.stanford.edu/projects/nmt"
    source_language = "en"
    target_language = "vi"

    def corpora(self) -> Corpora:
        return {TRAIN: ["train.{}"], DEV: ["tst2012.{}"], TEST: ["tst2013.{}"]}


@dataclasses.dataclass(frozen=True)
class Multi30k(Corpus):
    """The base class of both language pairs: English is the source."""

    vocab_size: int = 8000
    text: str = option(
        "raw",
        "The form of the text: raw, as it was written; lc.norm.tok, in lower case, with"
        " normalised punctuation and separated words, as papers on Multi30k score it.",
        choices=("raw", "lc.norm.tok"),
    )

    origin = "https://github.com/multi30k/dataset"
    source_language = "en"

    def corpora(self) -> Corpora:
        form = "" if self.text == "raw" else f".{self.text}"
        corpora = {}
        for split, stem in STEMS.items():
            corpora[split] = [stem + form + ".{}"]
        return corpora


@register_problem
@dataclasses.dataclass(frozen=True)
class Multi30kEnde(Multi30k):
    """Multi30k English-German, from a clone of its repository in --tmp_dir: 29,000
    pairs, dev val, test test_2016_flickr.

    The repository is github.com/multi30k/dataset (Elliott et al., 2016; task 1 of WMT
    2016 to 2018): English descriptions of pictures. The other test sets are the splits
    test_2017_flickr, test_2017_mscoco and test_2018_flickr.
    """

    target_language = "de"


@register_problem
@dataclasses.dataclass(frozen=True)
class Multi30kEnfr(Multi30k):
    """Multi30k English-French, from a clone of its repository in --tmp_dir: the splits
    of multi30k_ende.
    """

    target_language = "fr"
