"""The paper's translation tasks: WMT 2014 English-German and English-French (section
5.1).

The raw text comes from the unpacked archives of statmt.org/wmt14 in any folder below
--tmp_dir. If none of them is there, TensorFlow Datasets downloads the text.
"""

import contextlib
import dataclasses
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from t2tlite import registry
from t2tlite.files.text_files import unescape
from t2tlite.problems.corpus import TFDS_FOLDER, Corpus, FilePair

NETWORK_SECONDS = 10.0  # to wait for an answer of the server that has the text
# newstest2013, newstest2014
TFDS_SPLITS = {"train": "train", "dev": "validation", "test": "test"}

# Training files of both language pairs -> archive
TRAINING = {
    "europarl-v7.{target}-en.{}": (
        "https://www.statmt.org/wmt13/training-parallel-europarl-v7.tgz"
    ),
    "commoncrawl.{target}-en.{}": (
        "https://www.statmt.org/wmt13/training-parallel-commoncrawl.tgz"
    ),
    "news-commentary-v9.{target}-en.{}": (
        "https://www.statmt.org/wmt14/training-parallel-nc-v9.tgz"
    ),
}
# Each language pair of 2014 has its own test set, so the name with the pair is
# preferred; the folder test, of test-filtered.tgz, may lack sentences.
TEST_ARCHIVE = "https://www.statmt.org/wmt14/test-full.tgz"
TEST_SGM = "newstest2014-{target}en-{side}.{}.sgm"
TEST_NAMES = f"test-full/{TEST_SGM} or {TEST_SGM} or newstest2014.{{}}"
DEV_ARCHIVE = "https://www.statmt.org/wmt14/dev.tgz"
DEV_NAMES = "newstest2013.{} or newstest2013-{side}.{}.sgm"


class Wmt14(Corpus):
    """The base class of both language pairs: English is the source."""

    source_language: ClassVar[str] = "en"
    needed_flags: ClassVar[tuple[str, ...]] = ()
    advice: ClassVar[str] = (
        "\nAdd them, or give an empty --tmp_dir to download everything through"
        " TensorFlow Datasets."
    )
    # training files in addition to TRAINING
    more_training: ClassVar[dict[str, str]] = {}

    def corpora(self) -> dict[str, dict[str, str]]:
        return {
            "train": TRAINING | self.more_training,
            "dev": {DEV_NAMES: DEV_ARCHIVE},
            "test": {TEST_NAMES: TEST_ARCHIVE},
        }

    def pairs(self, split: str, tmp_dir: Path | None) -> Iterator[tuple[str, str]]:
        """Yields one corpus after the other, or the pairs in the order of TensorFlow
        Datasets if neither files nor archives are there.
        """
        self.check_split(split)
        if self._is_absent(tmp_dir):
            return self._tfds_pairs(split, tmp_dir)
        return super().pairs(split, tmp_dir)

    def files(self, tmp_dir: Path | None) -> list[Path]:
        """The raw files in `tmp_dir`; none with TensorFlow Datasets."""
        return [] if self._is_absent(tmp_dir) else super().files(tmp_dir)

    def find(self, tmp_dir: Path | None) -> dict[str, list[FilePair]]:
        files = super().find(tmp_dir)
        source = files["test"][0][0]
        ours = ("newstest2014.en", f"newstest2014.{self.target_language}")
        names = [path.name for path in source.parent.glob("newstest2014.*")]
        others = [name for name in names if not name.startswith(ours)]
        if others and source.name.startswith(ours):
            raise ValueError(
                f"{source} must be of the test set {self.target_language}-en."
                f" {others[0]} beside it is of another: move that away, or use the .sgm"
                f" files in {TEST_ARCHIVE}."
            )
        return files

    def _is_absent(self, tmp_dir: Path | None) -> bool:
        search = self.search(tmp_dir)
        return not (any(search.files.values()) or search.archives)

    def _tfds_pairs(
        self, split: str, tmp_dir: Path | None
    ) -> Iterator[tuple[str, str]]:
        foreign = self.target_language
        name = f"wmt14_translate/{foreign}-en"
        data_dir = None if tmp_dir is None else tmp_dir / TFDS_FOLDER
        try:
            import tensorflow_datasets as tfds  # slow to import, and few users need it

            _check_network(tfds.builder(name, data_dir=data_dir))
            dataset = tfds.load(
                name, split=TFDS_SPLITS[split], data_dir=data_dir, shuffle_files=False
            )
        except Exception as error:
            # network, checksums, archives, disk: these have no common class
            raise FileNotFoundError(
                f"{self.missing(self.search(tmp_dir), tmp_dir)}\nTensorFlow Datasets"
                f" could not prepare {name}: {type(error).__name__}: {error}"
            ) from error
        # The test set of TensorFlow Datasets comes from .sgm, whose entities it does
        # not replace.
        clean = unescape if split == "test" else str
        for example in tfds.as_numpy(dataset):
            source = example["en"].decode().removesuffix("\r")
            target = example[foreign].decode().removesuffix("\r")
            yield clean(source), clean(target)


@registry.register_problem
@dataclasses.dataclass(frozen=True)
class WmtEnde(Wmt14):
    """WMT 2014 English-German: 4.5 million pairs, dev newstest2013, test
    newstest2014.
    """

    vocab_size: int = 37000

    target_language: ClassVar[str] = "de"


@registry.register_problem
@dataclasses.dataclass(frozen=True)
class WmtEnfr(Wmt14):
    """WMT 2014 English-French: 36 to 41 million pairs, dev newstest2013, test
    newstest2014.
    """

    vocab_size: int = 32000

    target_language: ClassVar[str] = "fr"
    more_training: ClassVar[dict[str, str]] = {
        "undoc.2000.fr-en.{}": "https://www.statmt.org/wmt13/training-parallel-un.tgz",
        "giga-fren.release2.fixed.{}": (
            "https://www.statmt.org/wmt10/training-giga-fren.tar"
        ),
    }


def _check_network(builder: Any) -> None:
    """Raises OSError within seconds if TensorFlow Datasets would have to download text
    and its server cannot be reached, where TensorFlow Datasets itself would try for
    minutes.

    Nothing is checked if there are files of an earlier download: it may be complete.
    """
    downloads = Path(builder.data_dir).parents[2] / "downloads"
    if builder.is_prepared() or any(downloads.rglob("*.INFO")):
        return
    request = urllib.request.Request(TEST_ARCHIVE, method="HEAD")
    # a server that refuses a request is reachable
    with contextlib.suppress(urllib.error.HTTPError):
        urllib.request.urlopen(request, timeout=NETWORK_SECONDS).close()
