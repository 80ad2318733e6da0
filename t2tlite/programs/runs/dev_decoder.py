"""Decodes and scores dev sets in training, for --eval_bleu."""

import json
from collections.abc import Mapping, Sequence

from t2tlite.config import HParams
from t2tlite.console import counted, say
from t2tlite.data.batch_plan import not_evaluated
from t2tlite.data.token_store import TokenStore
from t2tlite.decoding.text_decoder import TextDecoder
from t2tlite.tasks.task import Score
from t2tlite.training.loop_config import TrainingSetup
from t2tlite.training.workers import gather, is_chief

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
        """The scores of these dev sets by name.

        The chief decodes. All workers receive the score of the first set, so that all
        stop early or none does; the others receive no further score.
        """
        scores = {}
        if is_chief(self._strategy):
            options = self._decoder.options()
            for name in names:
                decoded = self._decoder.decode_and_score(*self._texts[name], options)
                scores[name] = decoded.score
        first = json.dumps(scores.get(names[0]))
        of_chief = gather(self._strategy, first)[0]
        scores[names[0]] = Score(*json.loads(of_chief))
        return scores


def scored_text(
    hparams: HParams, store: TokenStore, decoder: TextDecoder, name: str
) -> Text:
    """The sources and references of the pairs of a dev set that are evaluated and whose
    source can be decoded.

    Reports how many sources are too long to decode. Raises ValueError if no pair is
    left.
    """
    limit = decoder.max_source_tokens
    chosen = store.source_lengths - 1 <= limit
    not_chosen = not_evaluated(hparams, store.source_lengths, store.target_lengths)
    chosen[not_chosen] = False
    sources = []
    targets = []
    pairs = zip(store.source_text(), store.target_text(), chosen, strict=True)
    for source, target, is_chosen in pairs:
        if is_chosen:
            sources.append(source)
            targets.append(target)
    undecoded = len(chosen) - len(not_chosen) - len(sources)
    if undecoded:
        say(
            f"Not decoded, and not part of the score: {counted(undecoded, 'source')} of"
            f" {name} of more than {limit:,} tokens."
        )
    if not sources:
        raise ValueError(
            f"A dev set to decode needs a source of at most {limit:,} tokens. Received:"
            f" none in {name}. Put one sentence on each line."
        )
    return sources, decoder.references(sources, targets, decoder.options())
