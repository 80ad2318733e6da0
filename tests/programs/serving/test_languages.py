"""Language pairs of runs, names of languages, and the detection of a text's
language.
"""

import dataclasses

import pytest

from t2tlite.data.language_codes import contradiction, distance, language_name
from t2tlite.data.manifest import Languages
from t2tlite.programs.serving.detection import detect
from t2tlite.programs.serving.models import served_pairs
from t2tlite.programs.serving.schemas import Detection


@pytest.fixture
def manifest(translator):
    return translator.manifest


def with_languages(manifest, source="", target="", **more):
    return dataclasses.replace(manifest, languages=Languages(source, target), **more)


def pairs_of(manifest, given_languages):
    """The pairs of one run with a value of --languages."""
    return codes(["RUN"], [manifest], given_languages)


def codes(*arguments):
    """The languages of what is served."""
    return [(pair.source, pair.target) for pair in served_pairs(*arguments)]


def test_a_run_that_records_its_languages_needs_no_flag(manifest):
    reverse = dataclasses.replace(manifest, reverse=True)
    assert codes(["a", "b"], [manifest, reverse]) == [("en", "de"), ("de", "en")]


def test_given_languages_count(manifest):
    manifests = [with_languages(manifest)] * 2
    expected = [("fr", "en"), ("en", "pt-BR")]
    assert codes(["a", "b"], manifests, ["fr-en", " en-pt_BR"]) == expected


@pytest.mark.parametrize(
    ("given_pair", "pair"),
    [
        ("EN-Pt_BR", ("en", "pt-BR")),
        ("pt-BR-en", ("pt-BR", "en")),
        ("zh_hant_tw-en", ("zh-Hant-TW", "en")),
        ("en-GB-de-AT", ("en-GB", "de-AT")),
        ("es-419-en", ("es-419", "en")),
        ("de-1996-de-1901", ("de-1996", "de-1901")),
        ("en-pb", ("en", "pt-BR")),
    ],
)
def test_pairs_are_written_as_bcp_47_writes_codes(manifest, given_pair, pair):
    recorded = with_languages(manifest)
    assert pairs_of(recorded, (given_pair,)) == [pair]
    # what it is written as is read as the same
    assert pairs_of(recorded, ("-".join(pair),)) == [pair]


@pytest.mark.parametrize(
    ("wanted", "served", "nearest"),
    [
        ("EN", ["en"], "en"),
        ("en-US", ["en", "de"], "en"),
        ("en_us", ["en", "en-US"], "en-US"),
        ("pt-br", ["pt", "pt-BR"], "pt-BR"),
        ("pt", ["pt-BR"], "pt-BR"),
        ("pt-PT", ["pt-BR"], None),
        ("pt", ["pt-BR", "pt"], "pt"),
        ("pb", ["pt-BR"], "pt-BR"),
        ("zt", ["zh-Hans", "zh-Hant"], "zh-Hant"),
        ("zh", ["zh-Hant", "zh-Hans"], "zh-Hans"),
        ("zh-tw", ["zh-Hans", "zh-Hant"], "zh-Hant"),
        ("zh-Hans-CN", ["zh-Hans", "zh"], "zh-Hans"),
        ("zh-Hans", ["zh"], "zh"),
        ("iw", ["he"], "he"),
        ("no", ["nb"], "nb"),
        ("e", ["en"], None),
        ("english", ["en"], None),
        ("", ["en"], None),
    ],
)
def test_the_nearest_served_language_is_meant(wanted, served, nearest):
    distances = {code: distance(wanted, code) for code in served}
    there = {code: far for code, far in distances.items() if far is not None}
    assert min(there, key=there.get, default=None) == nearest


def test_other_languages_than_recorded_are_reported(manifest):
    assert contradiction("RUN", manifest, ("en", "fr")) == (
        "RUN records en-de, and --languages says en-fr, which counts. Is it meant for"
        " another run?"
    )
    for same in (("en", "de"), ("en-GB", "de-AT")):
        assert not contradiction("RUN", manifest, same)
    assert not contradiction("RUN", with_languages(manifest), ("en", "fr"))
    assert not contradiction(
        "RUN", with_languages(manifest, "English", "EN_us"), ("en", "en")
    )


def test_a_parser_translates_to_trees(manifest):
    parser = with_languages(manifest, task="parsing")
    assert codes(["a"], [parser]) == [("en", "tree")]
    assert codes(["a"], [parser], ["de"]) == [("de", "tree")]


@pytest.mark.parametrize(
    ("given_languages", "message"),
    [
        ((), "RUN has no codes of its languages"),
        (("en-de", "de-en"), r"in their order\. Received: 2 for 1"),
        (("ende",), r"must be two codes .* such as en-de .* Received: 'ende'"),
        (("english-german",), r"en-pt_BR\. Received: 'english-german'"),
        (("en_de",), r"en-pt_BR\. Received: 'en_de'"),
        (("en-fr-ca",), r"en-pt_BR\. Received: 'en-fr-ca'"),
        (("en-EN",), r"Languages must differ\. Received: en and en\."),
    ],
)
def test_languages_that_cannot_be(manifest, given_languages, message):
    with pytest.raises(ValueError, match=message):
        pairs_of(with_languages(manifest), given_languages)


def test_recorded_names_of_languages_are_refused(manifest):
    named = with_languages(manifest, "English", "german")
    assert codes(["RUN"], [named], ["en-de"]) == [("en", "de")]
    for recorded, message in (
        (("English", "german"), "Received: 'English' and 'german', of twenty_words"),
        (
            ("../up", "de"),
            r"Received: '\.\./up' and 'de', .* Add --languages, such as en-de",
        ),
        (("en", "EN"), r"Languages must differ\. Received: en and EN"),
    ):
        with pytest.raises(ValueError, match=message):
            codes(["RUN"], [with_languages(manifest, *recorded)])
    parser = with_languages(manifest, "german", task="parsing")
    with pytest.raises(ValueError, match=r"Received: 'german'\."):
        codes(["RUN"], [parser])


def test_one_run_serves_several_pairs_by_tag(manifest):
    pairs = ("en-de:<2de>", "en-fr: <2fr>")
    assert served_pairs(["RUN"], [manifest], pairs) == [
        ("RUN", "en", "de", "<2de>"),
        ("RUN", "en", "fr", "<2fr>"),
    ]


def test_two_runs_of_a_pair_are_refused(manifest):
    message = (
        r"must differ in their languages\. Received: B and A for en-de\. Leave one out"
    )
    with pytest.raises(ValueError, match=message):
        codes(["A", "B"], [manifest, manifest])


def test_names():
    names = [language_name(code) for code in ("de", "pt-BR", "zh-Hans", "xx")]
    assert names == ["German", "Portuguese (BR)", "Chinese (simplified)", "xx"]


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
    assert detect(text, ["de", "en"]) == [Detection(language="de", confidence=0.0)]
