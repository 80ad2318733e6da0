"""The path from text to decoded and scored text.

Evaluation during training, `t2t-decoder`, Table 3, the server and the Python API call
`TextDecoder.decode`, and `TextDecoder.score_outputs` with what it returned.
"""

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Self, Unpack

from t2tlite.config import MAX_SENTENCE_TOKENS, DecodeHParams, DecodeOptions
from t2tlite.data.manifest import RunManifest
from t2tlite.decoding.alignment import Alignment, align, word_pieces
from t2tlite.decoding.engine import GLOSSARY, Done, Engine, Sentence
from t2tlite.decoding.rules import rules_of
from t2tlite.files.checkpoint_paths import step_of
from t2tlite.tasks.task import Output, Score, Task, open_task
from t2tlite.texts import described, list_of_texts
from t2tlite.vocabularies.encoders import TextEncoder

# An upper bound of the number of tokens of a text, without encoding it. tensor2tensor's
# subwords may spell an ASCII character as \126;_; NFKC may make 33 bytes out of 3.
# Of an ASCII character:
ASCII_TOKENS = 6
# Of each further byte of another character, in UTF-8:
FURTHER_BYTE_TOKENS = 17

# the outputs of each sentence, best first
NBest = list[list[Output]]


class Origin(NamedTuple):
    """The file and line where sentences begin, for error messages.

    Attributes:
        file: the file's name; "" if there is none.
        before: the number of lines before the first sentence.
    """

    file: str = ""
    before: int = 0

    def line(self, index: int) -> str:
        """The file and line of the sentence at `index`."""
        number = f"line {self.before + index + 1}"
        return f"{self.file}, {number}" if self.file else number

    def after(self, count: int) -> Self:
        """The origin of the sentences after the first `count`."""
        return self._replace(before=self.before + count)


NO_FILE = Origin()


class TooLong(ValueError):
    """A sentence has more tokens than can be decoded."""


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
        done: Done | None = None,
        origin: Origin = NO_FILE,
        prefix: Sequence[str] | None = None,
        terms: Sequence[Sequence[str]] | None = None,
        task: Task | None = None,
    ) -> NBest:
        """The `return_beams` best outputs of each sentence, best first: translations,
        or parses.

        A blank sentence gets one blank output. A parser takes words and punctuation
        separated by white space, as in its training trees. The decoded sequence of each
        sentence begins with its `prefix`, which may be empty; white space at its ends
        does not count, and its last word may be continued. `done` is called with the
        number of sentences after each batch. `task` makes the outputs, by default
        `task_under`. Outputs have the `terms` of their sentence.
        """
        rules = rules_of(options)
        task = task or self.task_under(options)
        sources = list(map(task.source, sentences))
        if prefix is None:
            prefix = [""] * len(sources)
        if terms is None:
            terms = [()] * len(sources)
        else:
            self.engine.check_supported(options, GLOSSARY)
        # white space at the end would be a piece of its own, which text never has
        starts = list(map(str.strip, prefix))
        _check_pairs("sentence needs a prefix, which may be empty", sources, starts)
        source_ids = self._encode(self.source_encoder, sources, origin)
        prefixes = self._encode(self.target_encoder, starts, origin)
        to_decode = []
        columns = sources, source_ids, prefixes, terms
        for source, ids, start, rows in zip(*columns, strict=True):
            constraint = None
            if options.tree_constraint:
                constraint = task.constraint(source, self.target_encoder)
            if self.source_encoder.is_blank(source):
                ids = []
            tokens = self.target_encoder.encode_batch(rows)
            to_decode.append(Sentence(ids, start, constraint, tokens))

        wanted = options.return_beams
        # sampling may return more outputs than the beam is wide
        needed = task.hypotheses(wanted, max(wanted, options.beam_size))
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
    ) -> Score:
        """The score of what `decode` returns, as `score_outputs` computes it."""
        n_best = self.decode(sources, options)
        return self.score_outputs(sources, references, n_best, options)

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
        n_best: NBest,
        options: DecodeHParams,
        slow_metrics: bool = False,
        task: Task | None = None,
    ) -> Score:
        """The task's metrics of what `decode` returned for sources with these options;
        `slow_metrics` adds the slow ones.

        References are as `references` returned them. `task` computes the metrics, by
        default `task_under`.
        """
        task = task or self.task_under(options)
        best = [outputs[0] for outputs in n_best]
        return task.score(sources, references, best, slow_metrics)

    def score_hypotheses(
        self,
        sources: Sequence[str],
        targets: Sequence[str],
        options: DecodeHParams,
        done: Done | None = None,
    ) -> list[Output]:
        """The targets as hypotheses: tokens, log-probability (natural, EOS included),
        score under `options`.

        Only alpha, batch_size and the rules matter of the options. Raises ValueError if
        there are not as many targets as sources, or one is longer than the limit.
        """
        _check_pairs("source needs a target", sources, targets)
        rules = rules_of(options)
        sources = list(map(self.task_under(options).source, sources))
        source_ids = self._encode(self.source_encoder, sources)
        target_ids = self._encode(self.target_encoder, targets)
        log_probs = self.engine.score(source_ids, target_ids, options, done)
        hypotheses = []
        for target, ids, log_prob in zip(targets, target_ids, log_probs, strict=True):
            score = rules.score(log_prob, len(ids) + 1, options.alpha)
            hypotheses.append(Output(target, score, log_prob, tuple(ids)))
        return hypotheses

    def align(
        self,
        sentences: Sequence[str],
        n_best: NBest,
        tag_words: int = 0,
    ) -> list[list[Alignment]]:
        """The word alignment of each output of each sentence: each target word is
        aligned to the source word with the greatest mean cross-attention.

        The outputs are those that `decode` returned; the words of a parse are those of
        the decoded sequence. The first `tag_words` words of each sentence, which are
        not of its text, are left out and not counted. Cross-attention is held for a
        few batches of pairs at a time. Raises ValueError if the engine has none.
        """
        alignments = []
        for outputs in self.aligned(sentences, n_best, tag_words):
            alignments.append([output.alignment or [] for output in outputs])
        return alignments

    def aligned(
        self,
        sentences: Sequence[str],
        n_best: NBest,
        tag_words: int = 0,
    ) -> NBest:
        """The outputs with their word alignments; arguments and errors are those of
        `align`.
        """
        sentences = list_of_texts(sentences)
        _check_n_best(sentences, n_best)
        sources = list(map(self.task.source, sentences))
        source_ids = self._encode(self.source_encoder, sources)
        all_aligned = []
        # the source and the target of each output that has words
        rows = []
        targets = []
        to_align = []
        for source, ids, outputs in zip(sources, source_ids, n_best, strict=True):
            words = word_pieces(self.source_encoder, ids, source, tag_words)
            aligned = []
            for output in outputs:
                alignment: Alignment = []
                aligned.append(dataclasses.replace(output, alignment=alignment))
                if output.ids:
                    rows.append(ids)
                    targets.append(output.ids)
                    to_align.append((words, output, alignment))
            all_aligned.append(aligned)
        for i, weights in self.engine.cross_attention(rows, targets, self.options()):
            words, output, alignment = to_align[i]
            target_words = word_pieces(self.target_encoder, output.ids, output.sequence)
            alignment += align(weights, words, target_words)
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
        sources = map(self.task.source, sentences)
        both = (self.source_encoder, sources), (self.target_encoder, targets)
        for encoder, texts in both:
            for i, text in enumerate(texts):
                # to encode all would be slow
                if most_tokens(text) >= self.max_source_tokens:
                    self._encode(encoder, [text], origin.after(i))

    def check_spelled(self, texts: Iterable[str], place: Callable[[int], str]) -> None:
        """Raises ValueError for a prefix, or a term of a glossary, that the target
        vocabulary cannot spell; `place` returns the file and line of each.
        """
        encoder = self.target_encoder
        if encoder.unknown is None:
            return
        for i, text in enumerate(texts):
            if encoder.unknown in encoder.encode(text):
                raise ValueError(
                    "Prefixes and glossaries must have words and characters of the"
                    f" vocabulary. Received: {place(i)}, {text[:40]!r}."
                )

    @property
    def max_source_tokens(self) -> int:
        """The longest sentence that can be decoded, its EOS not counted."""
        positions = self.engine.max_positions
        return MAX_SENTENCE_TOKENS if positions is None else positions - 1

    def _encode(
        self,
        encoder: TextEncoder,
        texts: Sequence[str],
        origin: Origin = NO_FILE,
    ) -> list[list[int]]:
        """The token ids of each text. Raises TooLong, naming the line, if one has more
        than `max_source_tokens`.
        """
        encoded = encoder.encode_batch(texts)
        for i, ids in enumerate(encoded):
            if len(ids) > self.max_source_tokens:
                raise TooLong(
                    f"A sentence must have at most {self.max_source_tokens:,} tokens."
                    f" Received: {origin.line(i)} with {len(ids):,}, beginning"
                    f" {texts[i][:40]!r}. Split it, or leave it blank."
                )
        return encoded


def most_tokens(text: str) -> int:
    """An upper bound of the number of tokens of a text."""
    further_bytes = len(text.encode(errors="surrogatepass")) - len(text)
    return ASCII_TOKENS * len(text) + FURTHER_BYTE_TOKENS * further_bytes


def evenly_spaced(count: int, wanted: int) -> list[int]:
    """`wanted` indices of `count` sentences, evenly spaced; all if there are no
    more.
    """
    wanted = min(count, wanted)
    return [i * count // wanted for i in range(wanted)]


def _check_pairs(needed: str, texts: Sequence[str], others: Sequence[str]) -> None:
    """Raises ValueError unless there are as many texts as others."""
    if len(texts) != len(others):
        raise ValueError(f"Each {needed}. Received: {len(texts)} and {len(others)}.")


def _check_n_best(sentences: Sequence[str], n_best: NBest) -> None:
    """Raises ValueError unless there is a list of outputs for each sentence."""
    try:
        is_right = len(n_best) == len(sentences)
        for outputs in n_best:
            is_right &= all(isinstance(output, Output) for output in outputs)
    except TypeError:  # not lists
        is_right = False
    if not is_right:
        raise ValueError(
            f"n_best must be what decode returned for {len(sentences)} sentences."
            f" Received: {described(n_best)}."
        )
