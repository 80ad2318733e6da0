"""Tasks: what becomes of hypotheses, by example, and which task a manifest names."""

import pytest
from tiny_task import run_manifest

from t2tlite.metrics.corpus_metrics import MetricOptions, Scoring
from t2tlite.tasks.parsing import parser
from t2tlite.tasks.task import Output, Score, open_task, signature_lines

WORDS = "the cat sat ."
RIGHT, SHORT = "(S (NP XX XX )NP (VP XX )VP . )S", "(S (NP XX )NP . )S"
TREE = "(TOP (S (NP (XX the) (XX cat)) (VP (XX sat)) (. .)))"


@pytest.mark.parametrize(
    ("task", "reverse", "expected"),
    [
        ("parsing", False, "parsing"),
        ("parsing", True, "translation"),
        ("text_to_text", True, "text_to_text"),
    ],
)
def test_a_reversed_parsing_problem_is_a_translation(task, reverse, expected):
    manifest = run_manifest(task=task, reverse=reverse)
    assert open_task(manifest.task, manifest.options).name == expected


def test_the_best_translations_are_those_of_highest_score():
    task = open_task("translation", {})
    hypotheses = [Output(text, -0.1, -0.1) for text in ("eins", "zwei", "drei")]
    chosen = task.choose("one", hypotheses, 2)
    assert chosen == hypotheses[:2]
    assert [output.sequence for output in chosen] == ["eins", "zwei"]
    assert task.hypotheses(2, beam_size=4) == 2
    assert task.reference("one", "eins") == "eins"
    assert task.summary(task.tally(chosen)) == ""
    with pytest.raises(ValueError, match=r"^Only a model .*Received: one of p\."):
        parser(task, "p")
    with pytest.raises(ValueError, match=r"^tree_constraint requires .* translations"):
        task.constraint("one", None)


def test_parse_that_fits_comes_before_a_more_probable_one():
    task = open_task("parsing", {})
    hypotheses = [
        Output(SHORT, -0.1, -0.1),
        Output(RIGHT, -0.9, -1.8, (7, 8, 9)),
    ]
    best, second = task.choose(WORDS, hypotheses, 2)
    assert (best.text, best.sequence, best.ids) == (TREE, RIGHT, (7, 8, 9))
    assert (best.score, best.log_prob) == (-0.9, -1.8)
    assert second.sequence == SHORT
    assert task.hypotheses(1, beam_size=4) == 4
    assert task.reference(WORDS, RIGHT) == TREE
    assert task.source(" the  (cat) ") == "the -LRB-cat-RRB-"
    summary = task.summary(task.tally([best]) + task.tally([second]))
    assert summary == "Sequences repaired to make trees: 1 of 2"


def test_a_blank_sentence_has_no_tree():
    (parse,) = open_task("parsing", {}).choose("", [Output("", 0.0, 0.0)], 1)
    assert (parse.tree, parse.text) == (None, "")


def test_sequences_stay_as_they_are_but_are_scored_as_trees():
    parsing = open_task("parsing", {})
    task = parsing.as_sequences()
    (output,) = task.choose(
        WORDS, [Output(SHORT, -0.1, -0.1), Output(RIGHT, -0.9, -0.9)], 1
    )
    assert (output.text, output.score) == (SHORT, -0.1)
    assert task.source(" the  (cat) ") == " the  (cat) "
    assert task.reference(WORDS, RIGHT) == RIGHT
    assert task.constraint(WORDS, None) is None
    (parse,) = parsing.choose(WORDS, [Output(SHORT, -0.1, -0.1)], 1)
    score = task.score([WORDS], [RIGHT], [output])
    assert score == parsing.score([WORDS], [TREE], [parse])
    # by hand: the words without a tag join NP, so of the gold brackets S, NP and VP only
    # S is predicted, and NP is wrong
    assert score.scores["recall"] == pytest.approx(100 / 3)
    assert score.scores["precision"] == 50.0


def test_scores_are_sacrebleus():
    import sacrebleu

    references = ["the cat sat on the mat", "a dog ran away"]
    sequences = ["the cat sat on a mat", "a dog ran away"]
    outputs = [Output(sequence, -1.0, -1.0) for sequence in sequences]
    task = open_task("translation", {})
    score = task.score(["", ""], references, outputs)
    chrf = sacrebleu.corpus_chrf(sequences, [references]).score
    assert score.value == sacrebleu.corpus_bleu(sequences, [references]).score
    assert score.metrics == {"bleu": score.value, "chrf2": chrf}
    assert str(score) == f"BLEU {score.value:.2f} (chrF2 {chrf:.2f})"
    with_ter = task.score(["", ""], references, outputs, slow_metrics=True)
    ter = sacrebleu.corpus_ter(sequences, [references]).score
    assert with_ter.scores == {"BLEU": score.value, "chrF2": chrf, "TER": ter}
    lines = signature_lines(with_ter.signatures)
    assert lines[0].startswith("BLEU|nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|")
    assert signature_lines({"F1": "EVALB"}) == ["EVALB"]


def test_outputs_of_which_one_is_right():
    """By hand: of 3 + 2 positions, 4 have the reference's token."""
    task = open_task("text_to_text", {})
    outputs = [Output("K AE T", -1.0, -1.0), Output("D AO", -1.0, -1.0)]
    score = task.score(["cat", "dog"], ["K AE T", "D AA"], outputs)
    assert (score.name, score.value) == ("exact_match", 50.0)
    assert score.metrics == {"exact_match": 50.0, "token_accuracy": 80.0}
    assert str(score) == "exact_match 50.00 (token_accuracy 80.00)"


def test_metrics_and_references_can_be_chosen():
    import sacrebleu

    task = open_task("translation", {})
    options = MetricOptions(chrf_word_order=2)
    more = ["Ein Hund bellt.", "Katzen schlafen."]
    scored = task.scored_by(Scoring(("chrf", "bleu"), options, (more,)))
    references = ["Der Hund bellt laut.", "Die Katze schläft."]
    outputs = ["Ein Hund bellt laut.", "Katzen schlafen."]
    score = scored.score(
        ["", ""], references, [Output(text, -1.0, -1.0) for text in outputs]
    )
    expected = sacrebleu.corpus_chrf(outputs, [references, more], word_order=2).score
    assert (score.name, score.value) == ("chrF2++", expected)
    assert list(score.scores) == ["chrF2++", "BLEU"]
    signature = score.signatures["chrF2++"]
    assert signature.startswith("nrefs:2|case:mixed|eff:yes|nc:6|nw:2|")
    for parsing in (open_task("parsing", {}), open_task("parsing", {}).as_sequences()):
        with pytest.raises(ValueError, match=r"a model of (trees|sequences)\."):
            parsing.scored_by(Scoring(("bleu",)))


def test_a_score_shows_counts_without_digits():
    scores = {"F1": 50.0, "recall": 40.123, "unscored sentences": 3}
    shown = str(Score("F1", scores, {"F1": "EVALB"}))
    assert shown == "F1 50.00 (recall 40.12, unscored sentences 3)"
