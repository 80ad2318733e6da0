"""The graph of a SavedModel: sentences in, hypotheses of beam search out, without
t2tlite and without Python.

It computes what `TextDecoder.decode` and `score_hypotheses` compute, in tensors of the
same shapes. Inputs and outputs are text, or token ids: tensorflow_text has ops for
SentencePiece, but none for tensor2tensor's subwords.
"""

# B batch, S source length, T target length, M hypotheses, N of them returned, L most
# positions

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import tensorflow as tf

from t2tlite.config import LONGEST_BUCKET, DecodeHParams
from t2tlite.data.batch_plan import padded_length
from t2tlite.decoding.beam_search import is_filled
from t2tlite.decoding.engine import BOUNDARIES, rules_of
from t2tlite.decoding.tensorflow_engine import log_probs, search
from t2tlite.decoding.text_decoder import TextDecoder
from t2tlite.layers.sublayer import forward_only
from t2tlite.programs.export.verification import NBest, keras_model
from t2tlite.tasks.parsing import ParsingTask
from t2tlite.tasks.task import Output
from t2tlite.types import EOS, PAD, Tensor
from t2tlite.vocabularies.normalisation import (
    JOINER,
    NON_JOINER,
    NONE,
    REMOVED,
    SPACE_MARK,
)
from t2tlite.vocabularies.sentencepiece_encoder import SentencePieceEncoder
from t2tlite.vocabularies.text_encoder import LINE_SPACES, TextEncoder

# regular expressions and what they are replaced with, one after the other
Replacements = tuple[tuple[str, str], ...]

# The characters that Python's str.isspace accepts and str.strip removes.
WHITE_SPACE = (
    r"[\t-\r\x{1c}-\x{20}\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}"
    r"\x{202f}\x{205f}\x{3000}]"
)
ZERO_WIDTH = f"[{REMOVED}{NON_JOINER}{JOINER}]+"
BLANK_AS_EMPTY: Replacements = ((f"^{WHITE_SPACE}+$", ""),)
STRIP: Replacements = ((f"^{WHITE_SPACE}+|{WHITE_SPACE}+$", ""),)  # str.strip
# ParsingTask.source: words between single spaces, brackets as -LRB- and -RRB-
TREE_WORDS: Replacements = (
    (f"{WHITE_SPACE}+", " "),
    (f"(^| ){ZERO_WIDTH}( {ZERO_WIDTH})*( |$)", " "),  # are not words
    ("^ | $", ""),
    (r"\(", "-LRB-"),
    (r"\)", "-RRB-"),
    (r"\x00", "\ufffd"),
)


def replaced(texts: Tensor, replacements: Replacements) -> Tensor:
    """Strings after these replacements."""
    for pattern, text in replacements:
        texts = tf.strings.regex_replace(texts, pattern, text)
    return texts


class SentencePieceText:
    """Text; its SentencePiece vocabulary is part of the graph."""

    noun = "texts"  # the name of an output
    spec = tf.TensorSpec((None,), tf.string)  # of a batch

    def __init__(self, encoder: SentencePieceEncoder) -> None:
        import tensorflow_text  # Windows and Python 3.14 have none

        self._normalize = tensorflow_text.normalize_utf8
        model = encoder.path.read_bytes()
        # to be saved with the graph
        self.tokenizer = tensorflow_text.SentencepieceTokenizer(model, add_eos=True)
        self._normalization = encoder.normalization

    def batch(self, texts: Sequence[str]) -> Tensor:
        """Texts as the graph takes them."""
        return tf.constant(texts)

    def text(self, output: bytes) -> str:
        """The text of an output of the graph."""
        return output.decode("utf-8")

    def encode(self, batch: Tensor, prepare: Replacements = ()) -> tf.RaggedTensor:
        """Token ids of a batch, int32 [B, (S)], each row with its EOS; `prepare` is
        applied to text before.
        """
        batch = replaced(batch, prepare)
        if self._normalization != NONE:  # the rest of the rule is in the tokenizer
            form = self._normalization.upper()
            batch = tf.strings.regex_replace(batch, SPACE_MARK, " ")
            batch = self._normalize(batch, form)
        return self.tokenizer.tokenize(batch)

    def decode(self, ids: Tensor) -> Tensor:
        """What the graph returns for token ids int32 [B, M, L] that end with an EOS:
        texts [B, M].
        """
        shape = tf.shape(ids)
        rows = tf.reshape(ids, (shape[0] * shape[1], shape[2]))
        tokens = tf.ragged.boolean_mask(rows, before_end(rows))
        texts = self.tokenizer.detokenize(tokens)
        lines = replaced(texts, ((LINE_SPACES.pattern, " "), *STRIP))
        return tf.reshape(lines, shape[:2])


class TokenIds:
    """Token ids, padded with PAD; the EOS is optional. Has the methods of
    `SentencePieceText`.
    """

    noun = "ids"
    spec = tf.TensorSpec((None, None), tf.int32)
    tokenizer = None

    def __init__(self, encoder: TextEncoder) -> None:
        self._encoder = encoder
        self._vocab_size = encoder.vocab_size

    def batch(self, texts: Sequence[str]) -> Tensor:
        rows = []
        for text in texts:
            blank = self._encoder.is_blank(text)
            rows.append([] if blank else self._encoder.encode(text))
        return tf.ragged.constant(rows, tf.int32, ragged_rank=1).to_tensor(PAD)

    def text(self, output: np.ndarray) -> str:
        return self._encoder.text(output)

    def encode(self, batch: Tensor, prepare: Replacements = ()) -> tf.RaggedTensor:
        message = f"Token ids must be at least 0 and less than {self._vocab_size}."
        valid = (batch >= 0) & (batch < self._vocab_size)
        check = tf.debugging.Assert(tf.reduce_all(valid), [message, "Received:", batch])
        with tf.control_dependencies([check]):
            rows = tf.ragged.boolean_mask(batch, before_end(batch))
        ends = tf.fill((tf.shape(batch)[0], 1), EOS)
        return tf.concat([rows, ends], axis=1)

    def decode(self, ids: Tensor) -> Tensor:
        return tf.where(before_end(ids), ids, PAD)


# the text of one side of a model, source or target, in a graph
GraphText = SentencePieceText | TokenIds


def before_end(ids: Tensor) -> Tensor:
    """Mask of the ids [..., L] before the first EOS that are not padding: bool
    [..., L].
    """
    ends = tf.cumsum(tf.cast(ids == EOS, tf.int32), axis=-1)
    return (ends == 0) & (ids != PAD)


def graph_text(encoder: TextEncoder) -> GraphText:
    """Text if the vocabulary can be part of a graph, otherwise token ids."""
    if isinstance(encoder, SentencePieceEncoder):
        return SentencePieceText(encoder)
    return TokenIds(encoder)


@forward_only()
def save_graph(
    model: TextDecoder, options: DecodeHParams, signature: str, folder: Path
) -> None:
    """Writes a SavedModel: weights, vocabularies and signatures. The one that decodes
    has this name, and is TensorFlow Serving's default.
    """
    graph = DecodingGraph(model, options)
    text, ids = [graph.source.spec], [graph.source.spec, graph.target.spec]
    decode = tf.function(graph.decode, autograph=False, input_signature=text)
    module = tf.Module()
    module.weights = [each.value for each in keras_model(model).trainable_variables]
    module.tokenizers = graph.source.tokenizer, graph.target.tokenizer
    module.score = tf.function(graph.score, autograph=False, input_signature=ids)
    setattr(module, signature, decode)
    signatures = {"serving_default": decode, signature: decode, "score": module.score}
    tf.saved_model.save(module, str(folder), signatures)


class DecodingGraph:
    """The functions of a SavedModel, to be traced."""

    def __init__(self, model: TextDecoder, options: DecodeHParams) -> None:
        self._model = keras_model(model)
        self._options = options
        self._rules = rules_of(options)
        self._limit = model.max_source_tokens
        self._longest = self._model.hparams.max_positions or LONGEST_BUCKET
        # to which an engine pads a sequence of each length
        padded = [padded_length(i, BOUNDARIES) for i in range(self._longest + 1)]
        self._padded_lengths = np.minimum(padded, self._longest).astype(np.int32)
        self.source = graph_text(model.source_encoder)
        self.target = graph_text(model.target_encoder)
        self._prepare = BLANK_AS_EMPTY
        if isinstance(model.task_under(options), ParsingTask):
            self._prepare = TREE_WORDS
        if self._rules.strips:
            self._prepare += STRIP

    def decode(self, sentences: Tensor) -> dict[str, Tensor]:
        """The best hypotheses: texts or ids, scores and log-probabilities [B, N]."""
        rows = self.source.encode(sentences, self._prepare)
        inputs = self._pad(rows)  # [B, S]
        lengths = tf.cast(rows.row_lengths(), tf.int32) - 1  # [B], the EOS not counted
        extra_length = min(self._options.extra_length, LONGEST_BUCKET)
        longest = tf.maximum(tf.reduce_max(lengths), 0)  # of no sentences: 0
        limits = self._rules.limits(lengths, extra_length, longest)
        # the EOS is one of the decoded tokens; a blank sentence has none
        max_lengths = tf.where(lengths == 0, 0, tf.minimum(limits, self._longest))
        greatest = tf.maximum(tf.reduce_max(max_lengths), 0)
        length = tf.gather(self._padded_lengths, greatest)  # L
        alpha, n_best = self._options.alpha, self._options.return_beams
        result = search(
            self._model, self._options, inputs, max_lengths, length, alpha, n_best, {}
        )
        return {
            self.target.noun: self.target.decode(result.ids[:, :n_best]),
            "scores": result.scores[:, :n_best],
            "log_probs": result.log_probs[:, :n_best],
        }

    def score(self, sources: Tensor, targets: Tensor) -> dict[str, Tensor]:
        """The log-probability of each target given its source, [B]."""
        equal = tf.debugging.assert_equal(
            tf.shape(sources)[0], tf.shape(targets)[0], "Each source needs a target."
        )
        with tf.control_dependencies([equal]):
            inputs = self._pad(self.source.encode(sources))
            goals = self._pad(self.target.encode(targets))
        return {"log_probs": log_probs(self._model, inputs, goals)}

    def _pad(self, rows: tf.RaggedTensor) -> Tensor:
        """Ragged ids [B, (S)] -> int32 [B, S], padded to a bucket boundary as
        `TensorFlowEngine` does.
        """
        lengths = tf.concat([rows.row_lengths(), [1]], axis=0)
        longest = tf.cast(tf.reduce_max(lengths), tf.int32)
        message = (
            f"A sentence must have at most {self._limit:,} tokens. Split it, or leave"
            " it blank. Received, tokens:"
        )
        within = tf.debugging.Assert(longest <= self._limit + 1, [message, longest - 1])
        with tf.control_dependencies([within]):
            block = rows.to_tensor(PAD)
            width = tf.gather(self._padded_lengths, tf.identity(longest))
        return tf.pad(block, ((0, 0), (0, width - tf.shape(block)[1])))


class LoadedGraph:
    """A SavedModel that was read back, called with text even if it takes and returns
    token ids.
    """

    def __init__(
        self, model: TextDecoder, options: DecodeHParams, signature: str, folder: Path
    ) -> None:
        self._loaded = tf.saved_model.load(str(folder))
        self._decode = getattr(self._loaded, signature)
        self._task = model.task_under(options)
        self._strips = rules_of(options).strips
        self._source = graph_text(model.source_encoder)
        self._target = graph_text(model.target_encoder)

    def decode(self, sentences: Sequence[str]) -> NBest:
        """The hypotheses of each sentence, best first."""
        if self._source.tokenizer is None:  # otherwise the graph prepares the sentences
            sentences = list(map(self._task.source, sentences))
            if self._strips:
                sentences = list(map(str.strip, sentences))
        outputs = self._decode(self._source.batch(sentences))
        names = self._target.noun, "scores", "log_probs"
        n_best_lists = []
        for columns in zip(*(outputs[name].numpy() for name in names), strict=True):
            n_best = []
            for output, score, log_prob in zip(*columns, strict=True):
                if is_filled(score):
                    text = self._target.text(output)
                    n_best.append(Output(text, float(score), float(log_prob)))
            n_best_lists.append(n_best)
        return n_best_lists

    def score(self, sources: Sequence[str], targets: Sequence[str]) -> list[float]:
        """The log-probability of each target given its source."""
        outputs = self._loaded.score(
            self._source.batch(sources), self._target.batch(targets)
        )
        return outputs["log_probs"].numpy().tolist()
