"""Decodes dev sets in training: BLEU or F1 with --eval_bleu, and samples for
TensorBoard.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import numpy as np

from t2tlite.config import HParams
from t2tlite.console import counted, say
from t2tlite.data.batch_plan import not_evaluated
from t2tlite.data.dataset import Dataset
from t2tlite.data.token_store import TokenStore
from t2tlite.decoding.source_text import evenly_spaced
from t2tlite.decoding.tensorflow_engine import TensorFlowEngine
from t2tlite.decoding.text_decoder import Decoded, TextDecoder
from t2tlite.tasks.task import Output, Score
from t2tlite.training.evaluation import ALL_DEV_SETS
from t2tlite.training.loop_config import Sample, TrainingSetup
from t2tlite.training.workers import gather, is_chief

SAMPLES = 6  # dev sentences whose translations TensorBoard shows


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
            decoded = {}
            for name in names:
                decoded[name] = self._decoder.decode_and_score(
                    *self._texts[name], self._decoder.options()
                )
                scores[name] = decoded[name].score
            if len(names) > 1:
                scores[ALL_DEV_SETS] = self._score_together(decoded)
        first = json.dumps(scores.get(names[0]))
        of_chief = gather(self._strategy, first)[0]
        scores[names[0]] = Score(*json.loads(of_chief))
        return scores

    def _score_together(self, decoded: Mapping[str, Decoded]) -> Score:
        all_sources: list[str] = []
        all_references: list[str] = []
        n_best: list[list[Output]] = []
        for name, outputs in decoded.items():
            sources, references = self._texts[name]
            all_sources += sources
            all_references += references
            n_best += outputs.n_best
        options = self._decoder.options()
        return self._decoder.score_outputs(all_sources, all_references, n_best, options)


class SampleDecoder:
    """Decodes a few sentences of the dev set that decides, greedily."""

    def __init__(self, setup: TrainingSetup, dataset: Dataset) -> None:
        engine = TensorFlowEngine(setup.model)  # not compiled, which takes longer
        decoder = TextDecoder(engine, dataset.encoders, dataset.manifest)
        self._decoder = decoder
        store = setup.deciding_dev_set
        sources = store.source_text()
        targets = store.target_text()
        short = np.flatnonzero(store.source_lengths <= decoder.max_source_tokens)
        self._sources = []
        self._targets = []
        for at in evenly_spaced(len(short), SAMPLES):
            self._sources.append(sources[short[at]])
            self._targets.append(targets[short[at]])

    def samples(self) -> list[Sample]:
        """The sentences with their outputs; empty if all of them are too long."""
        if not self._sources:
            return []
        greedy = self._decoder.options(beam_size=1)
        n_best = self._decoder.decode(self._sources, greedy)
        outputs = [hypotheses[0].text for hypotheses in n_best]
        references = self._decoder.references(self._sources, self._targets, greedy)
        return list(zip(self._sources, outputs, references, strict=True))


def scored_text(
    hparams: HParams, store: TokenStore, decoder: TextDecoder, name: str
) -> tuple[list[str], list[str]]:
    """The sources and references of the pairs of a dev set that are evaluated and whose
    source can be decoded.

    Reports how many sources are too long to decode. Raises ValueError if no pair is
    left.
    """
    lengths = store.source_lengths, store.target_lengths
    evaluated: np.ndarray = np.ones(len(store.source_lengths), bool)
    evaluated[not_evaluated(hparams, *lengths)] = False
    limit = decoder.max_source_tokens
    fits = store.source_lengths - 1 <= limit
    undecoded = int(np.count_nonzero(evaluated & ~fits))
    if undecoded:
        say(
            f"Not decoded, and not part of the score: {counted(undecoded, 'source')} of"
            f" {name} of more than {limit:,} tokens."
        )
    chosen = np.flatnonzero(evaluated & fits)
    if not len(chosen):
        raise ValueError(
            f"A dev set to decode needs a source of at most {limit:,} tokens. Received:"
            f" none in {name}. Put one sentence on each line."
        )
    sources = store.source_text()
    targets = store.target_text()
    chosen_sources = [sources[i] for i in chosen]
    chosen_targets = [targets[i] for i in chosen]
    options = decoder.options()
    return chosen_sources, decoder.references(chosen_sources, chosen_targets, options)
