"""The one path from text to decoded and scored text.

Evaluation during training, `t2t-decoder`, Table 3, the server and the Python API all call `TextDecoder.decode`, and
`TextDecoder.score_outputs` with what it returned.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from t2tlite.config import DecodeHParams
from t2tlite.data.manifest import RunManifest
from t2tlite.decoding.alignment import Alignment, align, words_of_pieces
from t2tlite.decoding.model_facts import NO_FACTS, ModelFacts
from t2tlite.decoding.sentences import (
    NO_FILE,
    Origin,
    batches_by_words,
    check_lengths,
    check_sentences,
    encode_within,
)
from t2tlite.decoding.token_decoder import Engine, TokenDecoder, TokenHypothesis
from t2tlite.files.checkpoint_paths import step_of
from t2tlite.tasks.task import Hypothesis, Output, Score, Task, open_task
from t2tlite.types import Seq2SeqModel
from t2tlite.vocabularies.encoders import TextEncoder

MAX_SOURCE_TOKENS = 2048  # in a sentence to decode; far more than in training

MOST_DECODERS = 32  # kept by a TextDecoder, one for each set of options

Done = Callable[[int], object]  # called with the number of sentences after each batch, for a progress bar


class Decoded(NamedTuple):
    """Sentences decoded and scored."""

    n_best: list[list[Output]]  # for each sentence, best first
    score: Score

    @property
    def best(self) -> list[Output]:
        """The best output of each sentence."""
        return [outputs[0] for outputs in self.n_best]


class TextDecoder:
    """A trained model with its vocabularies and its task: text in, text out, scored or not.

    Args:
        model: the model, whose weights TensorFlow decodes with unless there is another `engine`.
        encoders: the vocabularies of source and target.
        manifest: the run's.
        jit_compile: compile the search with XLA.
        checkpoint: the path of the weights; "" for a model that is being trained.
        engine: decodes with the weights; by default TensorFlow.
        facts: shown by `repr` in addition.

    Sentences have no line breaks. A sentence of more than `max_source_tokens` raises a ValueError that names its line.
    """

    def __init__(
        self,
        model: Seq2SeqModel,
        encoders: tuple[TextEncoder, TextEncoder],
        manifest: RunManifest,
        jit_compile: bool = False,
        checkpoint: str = "",
        engine: Engine | None = None,
        facts: ModelFacts = NO_FACTS,
    ) -> None:
        if engine is None:
            from t2tlite.decoding.decoder import TensorFlowEngine  # loads TensorFlow

            engine = TensorFlowEngine(model, jit_compile)
        self.model = model
        self.engine = engine
        self.encoders = self.source_encoder, self.target_encoder = encoders
        self.manifest = manifest
        self.task = open_task(manifest.task, manifest.options)
        self.jit_compile = jit_compile
        self.checkpoint = checkpoint
        self.step = step_of(checkpoint)
        self.facts = facts
        self._decoders: dict[DecodeHParams, TokenDecoder] = {}

    def __repr__(self) -> str:
        """Problem, hparam set, parameters, step and the metrics recorded for it, run."""
        facts = self.facts.sentence(self.manifest.name, self.model.count_params(), self.step)
        return f"<{type(self).__name__}: {facts}>"

    def decode(
        self,
        sentences: Sequence[str],
        options: DecodeHParams,
        done: Done = lambda count: None,
        origin: Origin = NO_FILE,
        prefix: Sequence[str] | None = None,
        task: Task | None = None,
    ) -> list[list[Output]]:
        """The `return_beams` best outputs of each sentence, best first: translations, or parses.

        A blank sentence gets one blank output. A parser takes words and punctuation separated by spaces, as in its
        training trees. The decoded sequence of each sentence begins with its `prefix`, which may be empty. `done` is
        called with the number of sentences after each batch. `task` makes the outputs, by default `task_under`.
        """
        task = task or self.task_under(options)
        check_sentences(sentences)
        sources = [task.source(sentence) for sentence in sentences]
        encoded = self._encode(self.source_encoder, sources, options.rules.strip_sentences, origin)
        ids = [row if source.strip() else [] for source, row in zip(sources, encoded, strict=True)]
        wanted = options.return_beams
        search = dataclasses.replace(options, return_beams=task.hypotheses(wanted, options.beam_size))
        batches = batches_by_words(sources, options.batch_size) if options.rules.batches_of_sentences else None
        prefixes = None if prefix is None else self._encode_prefixes(sentences, prefix, options, origin)
        found = self._decoder(search).decode(ids, done, batches, prefixes)
        return [
            task.choose(source, [self._hypothesis(one) for one in hypotheses], wanted)
            for source, hypotheses in zip(sources, found, strict=True)
        ]

    def decode_and_score(
        self,
        sources: Sequence[str],
        references: Sequence[str],
        options: DecodeHParams,
        done: Done = lambda count: None,
    ) -> Decoded:
        """Decodes sentences as `decode` does, and scores them as `score_outputs` does."""
        n_best = self.decode(sources, options, done)
        return Decoded(n_best, self.score_outputs(sources, references, n_best))

    def score_outputs(
        self,
        sources: Sequence[str],
        references: Sequence[str],
        n_best: Sequence[Sequence[Output]],
        slow_metrics: bool = False,
    ) -> Score:
        """The task's metrics of what `decode` returned for sentences; with `slow_metrics` also the slow ones.

        References are the sentences' targets as stored in the token store.
        """
        return self.task.score(sources, references, [outputs[0].sequence for outputs in n_best], slow_metrics)

    def score(
        self,
        sources: Sequence[str],
        targets: Sequence[str],
        options: DecodeHParams,
        done: Done = lambda count: None,
        origin: Origin = NO_FILE,
    ) -> list[float]:
        """The log-probability (natural) of each target, its EOS included, given its source.

        Under DecodeRules.score_per_token: the negative of it, divided by the number of tokens. Of the options, only
        batch_size and the rules matter. Raises ValueError if there are not as many targets as sources, or one is longer
        than the limit.
        """
        if len(sources) != len(targets):
            received = f"{len(sources)} sources, {len(targets)} targets"
            raise ValueError(f"Each source needs a target. Received: {received}.")
        strip = options.rules.strip_sentences
        source_ids = self._encode(self.source_encoder, sources, strip, origin)
        target_ids = self._encode(self.target_encoder, targets, strip, origin)
        log_probs = self._decoder(options).score(source_ids, target_ids, done)
        if options.rules.score_per_token:
            return [-value / (len(ids) + 1) for value, ids in zip(log_probs, target_ids, strict=True)]
        return log_probs

    def align(self, sentences: Sequence[str], n_best: Sequence[Sequence[Output]]) -> list[list[Alignment]]:
        """The word alignment of each output of each sentence, by the rule in decoding/alignment.py.

        The outputs are those that `decode` returned for the sentences. The words of a parse are those of the decoded
        sequence. One pass over all pairs computes their cross-attention.
        """
        sources = [self.task.source(sentence) for sentence in sentences]
        source_ids = self._encode(self.source_encoder, sources)
        places = [(i, output) for i, outputs in enumerate(n_best) for output in outputs]
        ids = [source_ids[i] if output.ids else [] for i, output in places]
        weights = self._decoder(self.options()).cross_attention(ids, [output.ids for _, output in places])
        words = [
            words_of_pieces(self.source_encoder, row, source) for source, row in zip(sources, source_ids, strict=True)
        ]
        found: list[list[Alignment]] = [[] for _ in sentences]
        for (i, output), matrix in zip(places, weights, strict=True):
            target_words = words_of_pieces(self.target_encoder, output.ids, output.sequence)
            found[i].append(align(matrix, words[i], target_words) if matrix.size else [])
        return found

    def task_under(self, options: DecodeHParams) -> Task:
        """The task that makes the outputs: the model's own, or one that leaves sequences as they are."""
        return self.task.as_sequences() if options.rules.leave_sequences else self.task

    def options(self, **changes: float | str) -> DecodeHParams:
        """The problem's decoding defaults with changes, such as `beam_size=8`; ValueError for a bad field or value."""
        return DecodeHParams.of({**self.manifest.decode_defaults, **changes})

    def check_lengths(self, sentences: Iterable[str], origin: Origin = NO_FILE) -> None:
        """Raises ValueError where a sentence is longer than the limit; the message names its line."""
        check_lengths(self.max_source_tokens, self.source_encoder, map(self.task.source, sentences), origin)

    def check_pair_lengths(self, pairs: Iterable[tuple[str, str]], origin: Origin = NO_FILE) -> None:
        """Raises ValueError where a source or target to score is longer than the limit; the message names its line."""
        for i, (source, target) in enumerate(pairs):
            check_lengths(self.max_source_tokens, self.source_encoder, [source], origin.after(i))
            check_lengths(self.max_source_tokens, self.target_encoder, [target], origin.after(i))

    @property
    def max_source_tokens(self) -> int:
        """The longest sentence that can be decoded, its EOS not counted."""
        positions = self.model.max_positions
        return MAX_SOURCE_TOKENS if positions is None else positions - 1

    def _encode_prefixes(
        self, sentences: Sequence[str], prefix: Sequence[str], options: DecodeHParams, origin: Origin
    ) -> list[list[int]]:
        if len(prefix) != len(sentences):
            raise ValueError(
                "Each sentence needs a prefix, which may be empty. Received: "
                f"{len(sentences)} sentences, {len(prefix)} prefixes."
            )
        encoded = self._encode(self.target_encoder, prefix, options.rules.strip_sentences, origin)
        return [ids if text.strip() else [] for text, ids in zip(prefix, encoded, strict=True)]

    def _decoder(self, options: DecodeHParams) -> TokenDecoder:
        decoder = self._decoders.pop(options, None) or self.engine.decoder(options)
        self._decoders[options] = decoder  # that used last is last
        if len(self._decoders) > MOST_DECODERS:
            del self._decoders[next(iter(self._decoders))]
        return decoder

    def _encode(
        self, encoder: TextEncoder, sentences: Sequence[str], strip: bool = False, origin: Origin = NO_FILE
    ) -> list[list[int]]:
        return encode_within(self.max_source_tokens, encoder, sentences, strip, origin)

    def _hypothesis(self, found: TokenHypothesis) -> Hypothesis:
        return Hypothesis(self._text(found.ids), found.score, found.log_prob, tuple(found.ids))

    def _text(self, ids: list[int]) -> str:
        return self.target_encoder.text(ids)
