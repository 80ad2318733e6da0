"""The path from text to decoded and scored text.

Evaluation during training, `t2t-decoder`, Table 3, the server and the Python API call
`TextDecoder.decode`, and `TextDecoder.score_outputs` with what it returned.
"""

import dataclasses
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Unpack

from t2tlite.config import MAX_SENTENCE_TOKENS, DecodeHParams, DecodeOptions
from t2tlite.data.manifest import RunManifest
from t2tlite.decoding.alignment import Alignment, align, word_pieces
from t2tlite.decoding.engine import Done, Engine, Sentence
from t2tlite.decoding.rules import OURS, Rules, rules_of
from t2tlite.decoding.source_text import (
    NO_FILE,
    Origin,
    check_lengths,
    encode_within,
)
from t2tlite.files.checkpoint_paths import step_of
from t2tlite.tasks.task import Output, Score, Task, open_task
from t2tlite.texts import described, list_of_texts
from t2tlite.vocabularies.encoders import TextEncoder


class Decoded(NamedTuple):
    """Sentences decoded and scored."""

    n_best: list[list[Output]]  # for each sentence, best first
    score: Score


class TextDecoder:
    """Decodes and scores text with a trained model, its vocabularies and its task.

    Args:
        engine: decodes with the weights.
        encoders: the vocabularies of source and target.
        manifest: the run's.
        checkpoint: the path of the weights; "" for a model that is being trained.

    Sentences have no line breaks. Methods raise ValueError, naming the line, for a
    sentence of more than `max_source_tokens`. Several threads may use a decoder at a
    time.
    """

    def __init__(
        self,
        engine: Engine,
        encoders: tuple[TextEncoder, TextEncoder],
        manifest: RunManifest,
        checkpoint: str = "",
    ) -> None:
        self.engine = engine
        self.encoders = encoders
        self.source_encoder, self.target_encoder = encoders
        self.manifest = manifest
        self.task = open_task(manifest.task, manifest.options)
        self.checkpoint = checkpoint
        self.step = step_of(checkpoint)

    def decode(
        self,
        sentences: Sequence[str],
        options: DecodeHParams,
        done: Done = lambda count: None,
        origin: Origin = NO_FILE,
        prefix: Sequence[str] | None = None,
        task: Task | None = None,
    ) -> list[list[Output]]:
        """The `return_beams` best outputs of each sentence, best first: translations,
        or parses.

        A blank sentence gets one blank output. A parser takes words and punctuation
        separated by white space, as in its training trees. The decoded sequence of each
        sentence begins with its `prefix`, which may be empty; white space at its ends
        does not count, and its last word may be continued. `done` is called with the
        number of sentences after each batch. `task` makes the outputs, by default
        `task_under`.
        """
        rules = rules_of(options)
        task = task or self.task_under(options)
        sources = [task.source(sentence) for sentence in sentences]
        source_ids = self._encode(self.source_encoder, sources, rules, origin)
        starts = [""] * len(sources)
        if prefix is not None:
            # white space at the end would be a piece of its own, which text never has
            starts = [text.strip() for text in prefix]
        _check_pairs("sentence", sources, "prefix, which may be empty", starts)
        prefixes = self._encode(self.target_encoder, starts, rules, origin)
        to_decode = []
        for source, ids, start in zip(sources, source_ids, prefixes, strict=True):
            constraint = None
            if options.tree_constraint:
                constraint = task.constraint(source, self.target_encoder)
            if self.source_encoder.is_blank(source):
                ids = []
            to_decode.append(Sentence(ids, start, constraint))

        wanted = options.return_beams
        # sampling may return more outputs than the beam is wide
        beam_size = max(wanted, options.beam_size)
        needed = task.hypotheses(wanted, beam_size)
        options = dataclasses.replace(options, return_beams=needed)
        batches = rules.batches(sources, options.batch_size)
        n_best = self.engine.decode(to_decode, options, done, batches)
        outputs = []
        for source, beam in zip(sources, n_best, strict=True):
            hypotheses = []
            for ids, score, log_prob in beam:
                text = self.target_encoder.text(ids)
                hypotheses.append(Output(text, score, log_prob, tuple(ids)))
            outputs.append(task.choose(source, hypotheses, wanted))
        return outputs

    def decode_and_score(
        self, sources: Sequence[str], references: Sequence[str], options: DecodeHParams
    ) -> Decoded:
        """Decodes sentences as `decode` does, and scores them as `score_outputs`
        does.
        """
        n_best = self.decode(sources, options)
        return Decoded(n_best, self.score_outputs(sources, references, n_best, options))

    def references(
        self, sources: Sequence[str], targets: Sequence[str], options: DecodeHParams
    ) -> list[str]:
        """The references to score against, from sources and targets of the token
        store.
        """
        task = self.task_under(options)
        return list(map(task.reference, sources, targets))

    def score_outputs(
        self,
        sources: Sequence[str],
        references: Sequence[str],
        n_best: Sequence[Sequence[Output]],
        options: DecodeHParams,
        slow_metrics: bool = False,
        task: Task | None = None,
    ) -> Score:
        """The task's metrics of what `decode` returned for sources with these options;
        `slow_metrics` adds the slow ones.

        References are as `references` returned them. `task` computes the metrics, by
        default `task_under`.
        """
        best = [outputs[0] for outputs in n_best]
        task = task or self.task_under(options)
        return task.score(sources, references, best, slow_metrics)

    def score_hypotheses(
        self,
        sources: Sequence[str],
        targets: Sequence[str],
        options: DecodeHParams,
        done: Done = lambda count: None,
        origin: Origin = NO_FILE,
    ) -> list[Output]:
        """The targets as hypotheses: tokens, log-probability (natural, EOS included),
        score under `options`.

        Only alpha, batch_size and the rules matter of the options. Raises ValueError if
        there are not as many targets as sources, or one is longer than the limit.
        """
        _check_pairs("source", sources, "target", targets)
        rules = rules_of(options)
        source_ids = self._encode(self.source_encoder, sources, rules, origin)
        target_ids = self._encode(self.target_encoder, targets, rules, origin)
        log_probs = self.engine.score(source_ids, target_ids, options, done)
        hypotheses = []
        for target, ids, log_prob in zip(targets, target_ids, log_probs, strict=True):
            score = rules.score(log_prob, len(ids) + 1, options.alpha)
            hypotheses.append(Output(target, score, log_prob, tuple(ids)))
        return hypotheses

    def align(
        self,
        sentences: Sequence[str],
        n_best: Sequence[Sequence[Output]],
        tag_words: int = 0,
    ) -> list[list[Alignment]]:
        """The word alignment of each output of each sentence: each target word is
        aligned to the source word with the greatest mean cross-attention.

        The outputs are those that `decode` returned; the words of a parse are those of
        the decoded sequence. The first `tag_words` words of each sentence, which are
        not of its text, are left out and not counted. Cross-attention is held for a
        few batches of pairs at a time. Raises ValueError if the engine has none.
        """
        sentences = list_of_texts(sentences)
        _check_n_best(sentences, n_best)
        sources = [self.task.source(sentence) for sentence in sentences]
        source_ids = self._encode(self.source_encoder, sources)
        words = []
        for source, ids in zip(sources, source_ids, strict=True):
            words.append(word_pieces(self.source_encoder, ids, source, tag_words))
        alignments: list[list[Alignment]] = []
        pairs = []  # a sentence and the index of an output that has words
        for sentence, outputs in enumerate(n_best):
            alignments.append([[] for _ in outputs])
            pairs += [(sentence, i) for i, output in enumerate(outputs) if output.ids]
        sources_of_pairs = [source_ids[sentence] for sentence, _ in pairs]
        targets = [n_best[sentence][i].ids for sentence, i in pairs]
        results = self.engine.cross_attention(sources_of_pairs, targets, self.options())
        for pair, weights in results:
            sentence, i = pairs[pair]
            output = n_best[sentence][i]
            target_words = word_pieces(self.target_encoder, output.ids, output.sequence)
            alignments[sentence][i] = align(weights, words[sentence], target_words)
        return alignments

    def aligned(
        self,
        sentences: Sequence[str],
        n_best: Sequence[Sequence[Output]],
        tag_words: int = 0,
    ) -> list[list[Output]]:
        """The outputs with their word alignments; arguments and errors are those of
        `align`.
        """
        all_aligned = []
        all_alignments = self.align(sentences, n_best, tag_words)
        for outputs, alignments in zip(n_best, all_alignments, strict=True):
            aligned = []
            for output, alignment in zip(outputs, alignments, strict=True):
                aligned.append(dataclasses.replace(output, alignment=alignment))
            all_aligned.append(aligned)
        return all_aligned

    def task_under(self, options: DecodeHParams) -> Task:
        """The task that makes the outputs under the rules of the options: the model's
        own, or one that leaves sequences as they are.
        """
        if rules_of(options).keeps_sequences:
            return self.task.as_sequences()
        return self.task

    def options(self, **changes: Unpack[DecodeOptions]) -> DecodeHParams:
        """The problem's decoding defaults with changes, such as `beam_size=8`;
        ValueError for a bad one.
        """
        return DecodeHParams(**{**self.manifest.decode_defaults, **changes})

    def check_lengths(
        self,
        sentences: Iterable[str],
        origin: Origin = NO_FILE,
        targets: Iterable[str] = (),
    ) -> None:
        """Raises TooLong, naming the line, where a sentence or a target (a prefix, or
        what is to be scored) exceeds the limit.
        """
        limit = self.max_source_tokens
        sources = map(self.task.source, sentences)
        check_lengths(limit, self.source_encoder, sources, origin)
        check_lengths(limit, self.target_encoder, targets, origin)

    @property
    def max_source_tokens(self) -> int:
        """The longest sentence that can be decoded, its EOS not counted."""
        positions = self.engine.max_positions
        return MAX_SENTENCE_TOKENS if positions is None else positions - 1

    def _encode(
        self,
        encoder: TextEncoder,
        texts: Sequence[str],
        rules: Rules = OURS,
        origin: Origin = NO_FILE,
    ) -> list[list[int]]:
        if rules.strips:
            texts = [text.strip() for text in texts]
        return encode_within(self.max_source_tokens, encoder, texts, origin)


def _check_pairs(
    name: str, texts: Sequence[str], other_name: str, others: Sequence[str]
) -> None:
    """Raises ValueError unless there are as many texts as others."""
    if len(texts) != len(others):
        raise ValueError(
            f"Each {name} needs a {other_name}. Received: {len(texts)} and"
            f" {len(others)}."
        )


def _check_n_best(sentences: Sequence[str], n_best: Sequence[Sequence[Output]]) -> None:
    """Raises ValueError unless there is a list of outputs for each sentence."""
    try:
        is_right = len(n_best) == len(sentences)
        for outputs in n_best:
            is_right &= all(isinstance(output, Output) for output in outputs)
    except TypeError:  # not lists
        is_right = False
    if not is_right:
        raise ValueError(
            "n_best must be what decode returned: a list of outputs for each of the"
            f" {len(sentences)} sentences. Received: {described(n_best)}."
        )
