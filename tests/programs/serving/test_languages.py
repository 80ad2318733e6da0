"""Language pairs of runs, names of languages, and the detection of a text's
language.
"""

from __future__ import annotations

import dataclasses

import pytest

from t2tlite.data.language_codes import language_name
from t2tlite.data.manifest import Languages
from t2tlite.programs.serving.languages import (
    LibreDetection,
    detect,
    language_pairs,
    with_tags,
)
from t2tlite.programs.serving.options import ServedRunOptions


@pytest.fixture
def manifest(translator):
    return translator.manifest


def with_languages(manifest, source="", target="", **more):
    return dataclasses.replace(manifest, languages=Languages(source, target), **more)


def pairs_of(manifest, given_languages):
    """The pairs of one run with a value of --languages."""
    options = with_tags(ServedRunOptions(runs=("RUN",), languages=given_languages))
    return language_pairs(["RUN"], [manifest], options.languages)


def test_a_run_that_records_its_languages_needs_no_flag(manifest):
    reverse = dataclasses.replace(manifest, reverse=True)
    assert language_pairs(["a", "b"], [manifest, reverse]) == [
        ("en", "de"),
        ("de", "en"),
    ]


def test_given_languages_count(manifest):
    assert language_pairs(
        ["a", "b"], [with_languages(manifest)] * 2, ["fr-en", " en-pt_BR"]
    ) == [
        ("fr", "en"),
        ("en", "pt_BR"),
    ]


def test_a_parser_translates_to_trees(manifest):
    parser = with_languages(manifest, task="parsing")
    assert language_pairs(["a"], [parser]) == [("en", "tree")]
    assert language_pairs(["a"], [parser], ["de"]) == [("de", "tree")]


@pytest.mark.parametrize(
    ("given_languages", "message"),
    [
        (
            (),
            (
                r"--languages must be given, since RUN does not record its languages"
                r" \(problem twenty_words\)\. Add"
            ),
        ),
        (
            ("en-de", "de-en"),
            (
                r"a pair for each --output_dir, in their order\. Received: 2 pairs"
                r" \(en-de,de-en\) for 1"
            ),
        ),
        (
            ("ende",),
            r"A language pair must be SOURCE-TARGET, .* such as en-de .* Received: 'ende'",
        ),
        (("english-german",), r"Received: 'english-german'\. Write en-de\."),
        (("English to German",), r"Received: 'English to German'\. Write en-de\."),
        (("en:de",), r"Received: 'en:de'\. Write en-de\."),
        (("en_de",), r"Received: 'en_de'\. Write en-de\."),
        (("en–de",), r"Received: 'en–de'\. Write en-de\."),
        (("en>german",), r"Received: 'en>german'\. Write en-de\."),
        (("en-de;de-en",), r"Received: 'en-de;de-en'\. Separate pairs by commas\."),
        (("pt-BR-en",), r"Received: 'pt-BR-en'\. Write a region behind _"),
        (("klingon-de",), r"Received: 'klingon-de'\. Write a code of two or three"),
        (("en-en",), r"The languages of a pair must differ\. Received: 'en-en'"),
    ],
)
def test_languages_that_cannot_be(manifest, given_languages, message):
    with pytest.raises(ValueError, match=message):
        pairs_of(with_languages(manifest), given_languages)


def test_languages_are_in_lower_case(manifest):
    pairs = language_pairs(["RUN"], [with_languages(manifest)], ["EN-Pt_BR"])
    assert pairs == [("en", "pt_BR")]


def test_recorded_names_of_languages_are_refused(manifest):
    named = with_languages(manifest, "English", "german")
    with pytest.raises(ValueError, match=r"English and german\. Add .*=en-de\."):
        language_pairs(["RUN"], [named])
    assert language_pairs(["RUN"], [named], ["en-de"]) == [("en", "de")]
    parser = with_languages(manifest, "german", task="parsing")
    with pytest.raises(ValueError, match=r"Received: 'german'\. Write de\."):
        language_pairs(["RUN"], [parser])


def test_one_run_serves_several_pairs_by_tag():
    options = with_tags(
        ServedRunOptions(runs=("RUN",), languages=("en-de:<2de>", "en-fr: <2fr>"))
    )
    assert (options.runs, options.languages, options.tags) == (
        ("RUN", "RUN"),
        ("en-de", "en-fr"),
        ("<2de>", "<2fr>"),
    )
    # without tags refused
    untagged = with_tags(ServedRunOptions(runs=("RUN",), languages=("en-de", "en-fr")))
    assert (untagged.runs, untagged.tags) == (("RUN",), ("", ""))
    assert with_tags(ServedRunOptions(runs=("RUN",))).runs == ("RUN",)


def test_two_runs_of_a_pair_are_refused(manifest):
    with pytest.raises(
        ValueError,
        match=r"served by one run\. Received: en-de for B and for A\. Leave one out",
    ):
        language_pairs(["A", "B"], [manifest, manifest])


def test_names():
    assert [language_name(code) for code in ("de", "pt_BR", "xx")] == [
        "German",
        "Portuguese (BR)",
        "xx",
    ]


@pytest.mark.parametrize(
    ("text", "candidates", "language"),
    [
        ("The cat is on the table.", ["de", "en"], "en"),
        ("Die Katze ist auf dem Tisch.", ["en", "de", "fr"], "de"),
        ("Le chat est sur la table.", ["en", "de", "fr"], "fr"),
        ("El gato no está en la mesa.", ["pt", "es", "it"], "es"),
        ("Кошка спит.", ["en", "ru"], "ru"),
        ("猫は寝ている。", ["zh", "ja"], "ja"),
        ("猫在睡觉", ["ja", "zh"], "zh"),
    ],
)
def test_a_language_is_detected(text, candidates, language):
    result = detect(text, candidates)[0]
    assert result.language == language
    assert result.confidence > 50


@pytest.mark.parametrize("text", ["", "123 456", "xyzzy"])
def test_nothing_speaks_for_a_language(text):
    assert detect(text, ["de", "en"]) == [LibreDetection(language="de", confidence=0.0)]
