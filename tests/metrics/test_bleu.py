"""Scores against values computed by sacrebleu and by Moses's Perl scripts, step by
step.
"""

import json
from pathlib import Path

import pytest

from t2tlite.metrics.corpus_metrics import (
    CorpusScore,
    MetricOptions,
    compound_split_bleu,
    corpus_scores,
    moses_tokenize,
    multi_bleu,
    replace_unicode_punctuation,
    split_hyphens,
)

SMALL = ["grammar_ende", "grammar_enfr"]
LARGE = [
    pytest.param(name, marks=pytest.mark.shared)
    for name in (
        "newstest2017.KIT.4950.en-de",
        "newstest2017.online-F.0.en-de",
        "newstest2017.uedin-nmt.4722.en-de",
        "newstest2017.SYSTRAN.4847.en-de",
        "tfnmt_newstest2013_deen",
    )
]
SETS = SMALL + LARGE
TOKENISED_SETS = LARGE[:3]  # those with scores of the paper's pipeline


@pytest.fixture
def bleu_dir(request: pytest.FixtureRequest, name: str) -> Path:
    if name in SMALL:
        return request.getfixturevalue("fixtures") / "bleu"
    return request.getfixturevalue("shared") / "data" / "bleu"


def lines(path: Path) -> list[str]:
    return path.read_bytes().decode("utf-8").removesuffix("\n").split("\n")


def load(bleu_dir: Path, name: str) -> tuple[list[str], list[str], dict]:
    """Translations, references and expected scores of one set."""
    text = (bleu_dir / "expected.json").read_text(encoding="utf-8")
    expected = json.loads(text)[name]
    files = [bleu_dir / expected[side] for side in ("hyp", "ref")]
    return *map(lines, files), expected


def corpus_bleu(
    translations: list[str], references: list[str], tokenize="13a", lowercase=False
) -> CorpusScore:
    options = MetricOptions(tokenize=tokenize, lowercase=lowercase)
    return corpus_scores(translations, references, ["bleu"], options)[0]


def perl_line(bleu: CorpusScore) -> str:
    """The score as multi-bleu.perl prints it, so that every number in the line is
    compared.
    """
    score = bleu.result
    precisions = "/".join(f"{p:.1f}" for p in score.precisions)
    return (
        f"BLEU = {score.score:.2f}, {precisions} (BP={score.bp:.3f},"
        f" ratio={score.ratio:.3f}, hyp_len={score.sys_len}, ref_len={score.ref_len})"
    )


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("tokenize", ["13a", "intl", "none"])
def test_corpus_bleu_is_sacrebleus(bleu_dir, name, tokenize):
    translations, references, expected = load(bleu_dir, name)
    score = corpus_bleu(translations, references, tokenize=tokenize)
    theirs = expected[f"sacrebleu {tokenize}"]
    assert score.result.score == pytest.approx(theirs, abs=1e-9)
    signature = f"nrefs:1|case:mixed|eff:no|tok:{tokenize}|smooth:exp|version:"
    assert score.signature.startswith(signature)


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("case", ["cased", "uncased"])
def test_intl_is_what_tensor2tensor_reports(bleu_dir, name, case):
    translations, references, expected = load(bleu_dir, name)
    score = corpus_bleu(translations, references, "intl", lowercase=case == "uncased")
    # tensor2tensor computes in float32
    theirs = expected[f"t2t bleu_wrapper {case}"]
    assert score.result.score == pytest.approx(theirs, abs=1e-5)


@pytest.mark.parametrize("name", SETS)
def test_multi_bleu_is_the_perl_script(bleu_dir, name):
    translations, references, expected = load(bleu_dir, name)
    line = perl_line(multi_bleu(translations, references))
    assert line == expected["multi-bleu.perl (files as they are)"]


@pytest.mark.parametrize("name", SMALL)
def test_tokenised_by_moses_and_split_at_hyphens(bleu_dir, name):
    """No line has characters that replace-unicode-punctuation.perl replaces."""
    translations, references, expected = load(bleu_dir, name)
    tokens = [list(map(moses_tokenize, side)) for side in (translations, references)]
    assert perl_line(multi_bleu(*tokens)) == expected["moses tok both, multi-bleu.perl"]
    score = compound_split_bleu(translations, references)
    assert perl_line(score) == expected["tok+ATAT, multi-bleu.perl"]


@pytest.mark.parametrize("name", TOKENISED_SETS)
def test_compound_split_bleu_is_the_papers_pipeline(bleu_dir, name):
    translations, references, expected = load(bleu_dir, name)
    score = compound_split_bleu(translations, references)
    theirs = expected["get_ende_bleu.sh (punct+tok+ATAT, multi-bleu.perl)"]
    assert perl_line(score) == theirs
    assert "compare only with the paper's scores" in str(score)


def test_three_lines_through_every_step(fixtures):
    text, normalised, tokens, split = (
        lines(fixtures / "bleu" / "atat" / f"example.{suffix}")
        for suffix in ("txt", "n", "tok", "atat")
    )
    assert [replace_unicode_punctuation(line) for line in text] == normalised
    assert [moses_tokenize(line) for line in normalised] == tokens
    assert [split_hyphens(line) for line in tokens] == split


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        # an abbreviation, but the line's last word
        ("Äpfel, Birnen usw.", "Äpfel , Birnen usw ."),
        ("Das ist z.B. so, z.B.", "Das ist z.B. so , z.B ."),
        ("am 5. Mai 1,5 Mio. Euro", "am 5. Mai 1,5 Mio. Euro"),
        ("Na ja...", "Na ja ..."),
        ("A & B [c] | d's", "A &amp; B &#91; c &#93; &#124; d &apos; s"),
        ("", ""),
    ],
)
def test_moses_tokenize(line, expected):
    """Expected lines follow from the rules of tokenizer.perl -l de."""
    assert moses_tokenize(line) == expected


def test_split_hyphens_reads_only_ascii_white_space():
    """The Perl script reads bytes, to which a non-breaking space is no white space."""
    assert split_hyphens("a -b c- d") == "a -b c- d"
    assert split_hyphens("a\u00a0-b") == "a\u00a0 ##AT##-##AT## b"


@pytest.mark.parametrize("function", [corpus_bleu, compound_split_bleu, multi_bleu])
def test_nothing_in_common_and_blank_lines_score_zero(function):
    assert function(["a b c d e"], ["v w x y z"]).result.score == 0
    assert function([""], ["v w x y z"]).result.score == 0
    assert function([""], [""]).result.ratio == 0


@pytest.mark.parametrize("function", [corpus_bleu, compound_split_bleu, multi_bleu])
def test_counts_must_agree(function):
    with pytest.raises(ValueError, match=r"equally many, .* Received: 2 and 3\."):
        function(["a", "b"], ["a", "b", "c"])
    with pytest.raises(ValueError, match=r"at least 1\. Received: 0 and 0\."):
        function([], [])
