"""Parsing scores, against what the program EVALB prints."""

import pytest

from t2tlite.trees import evalb as parsing
from t2tlite.trees.evalb import COLLINS, EvalbParameters, read_parameters
from t2tlite.trees.tree import Tree, parse_tree, read_parses

# gold line, predicted line, then what EVALB with COLLINS.prm prints for them after the
# number of the line: length, status, recall, precision, brackets matched, in gold and
# predicted, crossing, words, correct tags, tagging accuracy
EVALB_ROWS = {
    "unary chains": (
        "(TOP (S (NP (NP (NN a))) (VP (VB b))))",
        "(TOP (S (NP (NN a)) (VP (VP (VB b)))))",
        "2 0 75.00 75.00 3 4 4 0 2 2 100.00",
    ),
    "equal labels": (
        "(TOP (S (PRT (RP a)) (NP (PRT b))))",
        "(TOP (S (ADVP (RP a)) (NP (ADVP b))))",
        "2 0 100.00 100.00 3 3 3 0 2 2 100.00",
    ),
    "function tags": (
        "(TOP (S-TPC=2 (NP-SBJ-1 (NN a)) (NP=3 (NN-X b))))",
        "(TOP (S (NP (NN a)) (NP-TMP (NN b))))",
        "2 0 100.00 100.00 3 3 3 0 2 1 50.00",
    ),
    "punctuation": (
        "(TOP (S (`` ``) (NP (NN a) (, ,) (NN b)) ('' '') (VP (VB c)) (. .)))",
        "(S (NP (NN a) (NN b)) (: --) (VP (VB c)))",
        "7 0 100.00 100.00 3 3 3 0 3 3 100.00",
    ),
    "traces": (
        (
            "(TOP (S (NP-SBJ (-NONE- *T*-1)) (VP (VB a) (SBAR (-NONE- 0) (S (-NONE-"
            " *))))))"
        ),
        "(TOP (S (VP (VB a))))",
        "1 0 100.00 100.00 2 2 2 0 1 1 100.00",
    ),
    "crossing": (
        "(TOP (S (NP (NN a) (NN b)) (VP (VB c) (NP (NN d)))))",
        "(TOP (S (NN a) (X (X (NN b) (VB c)) (NN d))))",
        "4 0 25.00 33.33 1 4 3 2 4 4 100.00",
    ),
    "another word": (
        "(TOP (S (NN a) (NN b)))",
        "(TOP (S (NN a) (NN c)))",
        "2 1 0.00 0.00 0 0 0 0 0 0 0.00",
    ),
    "a missing word": (
        "(TOP (S (NN a) (NN b)))",
        "(TOP (S (NN a)))",
        "2 1 0.00 0.00 0 0 0 0 0 0 0.00",
    ),
    "only punctuation": (
        "(TOP (X (, ,) (. .)))",
        "(TOP (X (, ,) (. .)))",
        "2 2 0.00 0.00 0 0 0 0 0 0 0.00",
    ),
    "failed parse": (
        "(TOP (S (NN a) (. .)))",
        "(())",
        "2 2 0.00 0.00 0 0 0 0 0 0 0.00",
    ),
    "blank": ("(TOP (S (NN a) (. .)))", "", "2 2 0.00 0.00 0 0 0 0 0 0 0.00"),
    "blank gold": ("", "(TOP (S (NN a)))", "0 1 0.00 0.00 0 0 0 0 0 0 0.00"),
    "several trees": (
        "(TOP (S (NP (NN a)) (VB b)))",
        "(NP (NN a)) (VB b)",
        "2 0 50.00 100.00 1 2 1 0 2 2 100.00",
    ),
    "odd words": (
        "(TOP (S (NP (NN 1\\/2) (NN **)) (NN 10%d) (NN -LRB-) (NN #) (NN é中)))",
        "(TOP (S (NP (NN 1\\/2) (NN **)) (NN 10%d) (NN -LRB-) (NN #) (NN é中)))",
        "6 0 100.00 100.00 2 2 2 0 6 6 100.00",
    ),
    "no brackets": ("(TOP (NN a))", "(NN a)", "1 0 0.00 0.00 0 0 0 0 1 1 100.00"),
    "outer bracket without label": (
        "( (S (NN a)))",
        "(TOP (S (NN a)))",
        "1 0 50.00 100.00 1 2 1 0 1 1 100.00",
    ),
    "labels that begin with a dash": (
        "(TOP (-NONE- (NN a) (X (NN b))))",
        "(TOP (-LRB- (NN a) (-RRB- (NN b))))",
        "2 0 50.00 50.00 1 2 2 0 2 2 100.00",
    ),
}


def row(score: parsing.SentenceScore) -> str:
    """A score as EVALB's table has it, without the number of the line and the widths of
    columns.
    """
    return (
        f"{score.length} {score.status} {score.recall:.2f} {score.precision:.2f}"
        f" {score.matched} {score.gold} {score.predicted} {score.crossing}"
        f" {score.words} {score.correct_tags} {score.tagging_accuracy:.2f}"
    )


def score_lines(
    tmp_path, gold: str, predicted: str, parameters: EvalbParameters = COLLINS
) -> parsing.SentenceScore:
    path = tmp_path / "both.trees"
    path.write_text(f"{gold}\n{predicted}\n", encoding="utf-8")
    gold_tree, predicted_tree = read_parses(path)
    return parsing.score_sentence(gold_tree, predicted_tree, parameters)


@pytest.mark.parametrize(
    ("gold", "predicted", "expected"), EVALB_ROWS.values(), ids=EVALB_ROWS
)
def test_sentence_equals_evalb(tmp_path, gold, predicted, expected):
    score = score_lines(tmp_path, gold, predicted)
    assert row(score) == expected
    assert bool(score.message) == (score.status == parsing.ERROR)


def test_brackets_without_words_beside_words_are_not_scored(tmp_path):
    gold = "(TOP (S (NP (NN a)) (VP (VB b))))"
    predicted = "(TOP (S (NP) (NP (NN a) ()) (X (VP (VB b)) (PP (NP)))))"
    score = score_lines(tmp_path, gold, predicted)
    assert row(score) == "2 0 100.00 75.00 3 3 4 0 2 2 100.00"


def test_summary_equals_evalb(tmp_path):
    scores = [
        score_lines(tmp_path, gold, predicted)
        for gold, predicted, _ in EVALB_ROWS.values()
    ]
    assert (
        str(parsing.summarise(scores)) == "Number of sentence        =     17\n"
        "Number of Error sentence  =      3\n"
        "Number of Skip  sentence  =      3\n"
        "Number of Valid sentence  =     11\n"
        "Bracketing Recall         =  74.07\n"
        "Bracketing Precision      =  83.33\n"
        "Bracketing FMeasure       =  78.43\n"
        "Complete match            =  54.55\n"
        "Average crossing          =   0.18\n"
        "No crossing               =  90.91\n"
        "2 or less crossing        = 100.00\n"
        "Tagging accuracy          =  96.15"
    )


def test_none_is_no_parse():
    gold = parse_tree("(TOP (S (NN a)))")
    score = parsing.evalb([gold, gold], [None, gold])
    assert (score.sentences, score.skipped, score.valid, score.f1) == (2, 1, 1, 100.0)
    nothing = parsing.evalb([gold], [None])
    assert (nothing.valid, nothing.f1, nothing.average_crossing) == (0, 0.0, 0.0)


def test_each_gold_tree_needs_a_prediction():
    tree = parse_tree("(TOP (NN a))")
    with pytest.raises(ValueError, match="argument 2 is shorter"):
        parsing.evalb([tree, tree], [tree])


def test_deep_and_long_trees():
    text = "(S (NN a) " * 1500 + "(NN a)" + ")" * 1500
    assert (
        row(parsing.score_sentence(parse_tree(text), parse_tree(text)))
        == "1501 0 100.00 100.00 1500 1500 1500 0 1501 1501 100.00"
    )
    label = "X" * 1000
    tree = parse_tree(f"({label} ({label} {label}))")
    assert parsing.score_sentence(tree, tree).matched == 1


def test_a_word_without_a_tag_is_refused():
    tree = Tree("NP", ("the", Tree("NN", ("cat",))))
    with pytest.raises(
        ValueError, match=r"the only child of its bracket\. Received: 'the'"
    ):
        parsing.score_sentence(tree, tree)


def test_other_parameters(tmp_path):
    gold, predicted = (
        "(TOP (S (A (NN a)) (VP (VB b) (NN c))))",
        "(TOP (S (B (NN a)) (NP (VB b) (NN d))))",
    )
    parameters = EvalbParameters(
        labelled=0,
        equal_words=frozenset({("c", "d")}),
        equal_labels=frozenset({("NN", "VB")}),
    )
    # EVALB
    assert (
        row(score_lines(tmp_path, gold, predicted, parameters))
        == "3 0 100.00 100.00 4 4 4 0 3 3 100.00"
    )
    assert score_lines(tmp_path, gold, predicted).message == "Words unmatch (c|d)"


def test_quotation_marks_taken_for_words(tmp_path):
    gold = "(TOP (S (NP (DT a) (`` \") (JJ b) ('' \")) (VP (VB c))))"
    predicted = '(TOP (S (NP (DT a) (NN ") (JJ b)) (NP (POS ")) (VP (VB c))))'
    quotes = EvalbParameters(
        delete_labels=COLLINS.delete_labels,
        quote_labels=frozenset({"``", "''", "POS", "NN", "CD", "VBZ", ":"}),
    )
    # EVALB's new.prm
    assert (
        row(score_lines(tmp_path, gold, predicted, quotes))
        == "5 0 66.67 50.00 2 3 4 0 5 3 60.00"
    )
    assert score_lines(tmp_path, gold, predicted).message == "Length unmatch (3|5)"


def test_collins_is_evalbs_file(fixtures):
    assert read_parameters(fixtures / "evalb" / "COLLINS.prm") == COLLINS


def test_parameter_file(tmp_path):
    path = tmp_path / "my.prm"
    path.write_text(
        "# comment\n\nDEBUG 1\nMAX_ERROR 10\nLABELED 0   \nCUTOFF_LEN 10\nDELETE_LABEL"
        " X\nDELETE_LABEL #\nDELETE_LABEL_FOR_LENGTH Y\nEQ_LABEL A B\nEQ_WORD  a"
        " b\nQUOTE_LABEL ''\n",
        encoding="utf-8",
    )
    assert read_parameters(path) == EvalbParameters(
        labelled=0,
        cutoff_length=10,
        delete_labels=frozenset({"X", "#"}),
        delete_labels_for_length=frozenset({"Y"}),
        equal_labels=frozenset({("A", "B")}),
        equal_words=frozenset({("a", "b")}),
        quote_labels=frozenset({"''"}),
    )


@pytest.mark.parametrize(
    "line",
    ["DELETE_LABELS X", "DELETE_LABEL", "EQ_LABEL X", "CUTOFF_LEN forty", "LABELED -1"],
)
def test_bad_parameter_file(tmp_path, line):
    path = tmp_path / "my.prm"
    path.write_text(f"# comment\n{line}\n", encoding="utf-8")
    message = rf"my\.prm, line 2: a parameter of EVALB .* Received: '{line}'\."
    with pytest.raises(ValueError, match=message):
        read_parameters(path)
