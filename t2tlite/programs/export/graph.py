"""The graph of a SavedModel: sentences in, hypotheses of beam search out, without
t2tlite and without Python.

It computes what `TextDecoder.decode` and `score_hypotheses` compute, in tensors of the
same shapes.
"""

# B batch, S source length, T target length, M hypotheses, N of them returned, L most
# positions

from pathlib import Path

import numpy as np
import tensorflow as tf

from t2tlite.config import LONGEST_BUCKET, DecodeHParams
from t2tlite.data.batch_plan import padded_length
from t2tlite.decoding.engine import BOUNDARIES
from t2tlite.decoding.rules import rules_of
from t2tlite.decoding.tensorflow_engine import log_probs, search
from t2tlite.decoding.text_decoder import TextDecoder
from t2tlite.layers.sublayer import forward_only
from t2tlite.tasks.parsing import ParsingTask
from t2tlite.types import EOS, PAD, Seq2SeqModel, Tensor
from t2tlite.vocabularies import normalisation, text_encoder

# regular expressions and what they are replaced with, one after the other
Replacements = tuple[tuple[str, str], ...]

# The characters that Python's str.isspace accepts and str.strip removes.
WHITE_SPACE = (
    r"[\t-\r\x{1c}-\x{20}\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}"
    r"\x{202f}\x{205f}\x{3000}]"
)
ZERO_WIDTH = (
    f"[{normalisation.REMOVED}{normalisation.NON_JOINER}{normalisation.JOINER}]+"
)
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
LINE: Replacements = ((text_encoder.LINE_SPACES.pattern, " "), *STRIP)


def replaced(texts: Tensor, replacements: Replacements) -> Tensor:
    """Strings after these replacements."""
    for pattern, text in replacements:
        texts = tf.strings.regex_replace(texts, pattern, text)
    return texts


class SentencePieceText:
    """The text of one side of a model, source or target. Its vocabulary is part of the
    graph.
    """

    def __init__(self, encoder: text_encoder.TextEncoder) -> None:
        import tensorflow_text  # Windows and Python 3.14 have none

        self._normalize = tensorflow_text.normalize_utf8
        self._normalization = encoder.normalization
        model = encoder.path.read_bytes()
        # to be saved with the graph
        self.tokenizer = tensorflow_text.SentencepieceTokenizer(model, add_eos=True)

    def encode(self, texts: Tensor) -> tf.RaggedTensor:
        """Token ids of a batch, int32 [B, (S)], each row with its EOS."""
        # the rest of the rule is in the tokenizer
        if self._normalization != normalisation.NONE:
            texts = tf.strings.regex_replace(texts, normalisation.SPACE_MARK, " ")
            texts = self._normalize(texts, self._normalization.upper())
        return self.tokenizer.tokenize(texts)

    def decode(self, ids: Tensor) -> Tensor:
        """Texts [B, M] of token ids int32 [B, M, L] that end with an EOS."""
        shape = tf.shape(ids)
        rows = tf.reshape(ids, (shape[0] * shape[1], shape[2]))
        ends = tf.cumsum(tf.cast(rows == EOS, tf.int32), axis=-1)
        tokens = tf.ragged.boolean_mask(rows, (ends == 0) & (rows != PAD))
        texts = self.tokenizer.detokenize(tokens)
        return tf.reshape(replaced(texts, LINE), shape[:2])


@forward_only()
def save_graph(
    model: TextDecoder,
    keras_model: Seq2SeqModel,
    options: DecodeHParams,
    signature: str,
    folder: Path,
) -> None:
    """Writes a SavedModel: weights, vocabularies and signatures. The one that decodes
    has this name, and is TensorFlow Serving's default.
    """
    graph = DecodingGraph(model, keras_model, options)
    texts = tf.TensorSpec((None,), tf.string)
    decode = tf.function(graph.decode, autograph=False, input_signature=[texts])
    score = tf.function(graph.score, autograph=False, input_signature=[texts, texts])
    module = tf.Module()
    module.weights = [variable.value for variable in keras_model.trainable_variables]
    module.tokenizers = graph.source.tokenizer, graph.target.tokenizer
    module.score = score
    setattr(module, signature, decode)
    signatures = {"serving_default": decode, signature: decode, "score": score}
    tf.saved_model.save(module, str(folder), signatures)


class DecodingGraph:
    """The functions of a SavedModel, to be traced."""

    def __init__(
        self, model: TextDecoder, keras_model: Seq2SeqModel, options: DecodeHParams
    ) -> None:
        self._model = keras_model
        self._options = options
        self._rules = rules_of(options)
        self._limit = model.max_source_tokens
        self._longest = keras_model.hparams.max_positions or LONGEST_BUCKET
        # to which an engine pads a sequence of each length
        padded = [padded_length(i, BOUNDARIES) for i in range(self._longest + 1)]
        self._padded_lengths = np.minimum(padded, self._longest).astype(np.int32)
        self.source = SentencePieceText(model.source_encoder)
        self.target = SentencePieceText(model.target_encoder)
        self._prepare = BLANK_AS_EMPTY
        if isinstance(model.task_under(options), ParsingTask):
            self._prepare = TREE_WORDS
        if self._rules.strips:
            self._prepare += STRIP

    def decode(self, sentences: Tensor) -> dict[str, Tensor]:
        """The best hypotheses: texts, scores and log-probabilities [B, N]."""
        rows = self.source.encode(replaced(sentences, self._prepare))
        inputs = self._pad(rows)  # [B, S]
        lengths = tf.cast(rows.row_lengths(), tf.int32) - 1  # [B], the EOS not counted
        extra_length = min(self._options.extra_length, LONGEST_BUCKET)
        longest = tf.maximum(tf.reduce_max(lengths), 0)  # of no sentences: 0
        limits = self._rules.limits(lengths, extra_length, longest)
        # the EOS is one of the decoded tokens; a blank sentence has none
        max_lengths = tf.where(lengths == 0, 0, tf.minimum(limits, self._longest))
        greatest = tf.maximum(tf.reduce_max(max_lengths), 0)
        length = tf.gather(self._padded_lengths, greatest)  # L
        alpha = self._options.alpha
        n_best = self._options.return_beams
        result = search(
            self._model, self._options, inputs, max_lengths, length, alpha, n_best, {}
        )
        return {
            "texts": self.target.decode(result.ids[:, :n_best]),
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
