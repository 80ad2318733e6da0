"""Decodes dev sets in training: BLEU or F1 with --eval_bleu, and samples for
TensorBoard.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from t2tlite.config import HParams
from t2tlite.console import counted, say
from t2tlite.data.batch_plan import not_evaluated
from t2tlite.data.dataset import Dataset
from t2tlite.data.token_store import TokenStore
from t2tlite.decoding.source_text import evenly_spaced
from t2tlite.decoding.tensorflow_engine import TensorFlowEngine
from t2tlite.decoding.text_decoder import TextDecoder
from t2tlite.tasks.task import Score
from t2tlite.training.evaluation import ALL_DEV_SETS
from t2tlite.training.loop_config import Sample, TrainingSetup
from t2tlite.training.workers import gather, is_chief

SAMPLES = 6  # dev sentences whose translations TensorBoard shows

Text = tuple[list[str], list[str]]  # sources and references


class DevScorer:
    """Decodes and scores the dev sets with the weights that the model has."""

    def __init__(self, setup: TrainingSetup, decoder: TextDecoder) -> None:
        self._strategy = setup.strategy
        self._decoder = decoder
        self._texts = {}
        for name, store in setup.dev_sets.items():
            self._texts[name] = scored_text(setup.model.hparams, store, decoder, name)

    def score(self, names: Sequence[str]) -> Mapping[str, Score]:
        """The scores of these dev sets by name, and of all together if there are
        several.

        The chief decodes. All workers receive the score of the first set, so that all
        stop early or none does; the others receive no further score.
        """
        scores: dict[str, Score] = {}
        if is_chief(self._strategy):
            decoder = self._decoder
            options = decoder.options()
            together: list[list[Any]] = [[], [], []]
            for name in names:
                texts = self._texts[name]
                decoded = decoder.decode_and_score(*texts, options)
                scores[name] = decoded.score
                together[0] += texts[0]
                together[1] += texts[1]
                together[2] += decoded.n_best
            if len(names) > 1:
                sources, references, n_best = together
                scores[ALL_DEV_SETS] = decoder.score_outputs(
                    sources, references, n_best, options
                )
        first = json.dumps(scores.get(names[0]))
        of_chief = gather(self._strategy, first)[0]
        scores[names[0]] = Score(*json.loads(of_chief))
        return scores


class SampleDecoder:
    """Decodes a few sentences of the dev set that decides, greedily."""

    def __init__(self, setup: TrainingSetup, dataset: Dataset) -> None:
        engine = TensorFlowEngine(setup.model)  # not compiled, which takes longer
        self._decoder = TextDecoder(engine, dataset.encoders, dataset.manifest)
        text = decodable_text(
            setup.model.hparams, setup.deciding_dev_set, self._decoder
        )
        chosen = evenly_spaced(len(text[0]), SAMPLES)
        sources, references = text
        self._sources = [sources[i] for i in chosen]
        self._references = [references[i] for i in chosen]

    def samples(self) -> list[Sample]:
        """The sentences with their outputs; empty if all of them are too long."""
        greedy = self._decoder.options(beam_size=1)
        n_best = self._decoder.decode(self._sources, greedy)
        outputs = [hypotheses[0].text for hypotheses in n_best]
        return list(zip(self._sources, outputs, self._references, strict=True))


def scored_text(
    hparams: HParams, store: TokenStore, decoder: TextDecoder, name: str
) -> Text:
    """The text of a dev set to decode and score.

    Reports how many sources are too long to decode. Raises ValueError if no pair is
    left.
    """
    text = decodable_text(hparams, store, decoder)
    lengths = store.source_lengths, store.target_lengths
    evaluated = len(store.source_lengths) - len(not_evaluated(hparams, *lengths))
    undecoded = evaluated - len(text[0])
    limit = decoder.max_source_tokens
    if undecoded:
        say(
            f"Not decoded, and not part of the score: {counted(undecoded, 'source')} of"
            f" {name} of more than {limit:,} tokens."
        )
    if undecoded == evaluated:
        raise ValueError(
            f"A dev set to decode needs a source of at most {limit:,} tokens. Received:"
            f" none in {name}. Put one sentence on each line."
        )
    return text


def decodable_text(hparams: HParams, store: TokenStore, decoder: TextDecoder) -> Text:
    """The sources and references of the pairs of a dev set that are evaluated and whose
    source can be decoded.
    """
    chosen = store.source_lengths - 1 <= decoder.max_source_tokens
    chosen[not_evaluated(hparams, store.source_lengths, store.target_lengths)] = False
    sources = []
    targets = []
    pairs = zip(store.source_text(), store.target_text(), chosen, strict=True)
    for source, target, is_chosen in pairs:
        if is_chosen:
            sources.append(source)
            targets.append(target)
    return sources, decoder.references(sources, targets, decoder.options())
