"""The graph of a SavedModel: sentences in, hypotheses of beam search out, without
t2tlite and without Python.

It computes what `TextDecoder.decode` computes.
"""

# B batch, S source length, T target length, M hypotheses, N of them returned, L most
# positions

from pathlib import Path

import tensorflow as tf

from t2tlite.config import LONGEST_BUCKET, DecodeHParams
from t2tlite.decoding.rules import rules_of
from t2tlite.decoding.tensorflow_engine import search
from t2tlite.decoding.text_decoder import TextDecoder
from t2tlite.layers.sublayer import forward_only
from t2tlite.types import EOS, PAD, Seq2SeqModel, Tensor
from t2tlite.vocabularies import normalisation, text_encoder

# what str.strip removes
BLANKS = f"[{normalisation.PLAIN_SPACES}]+"
ENDS = f"^{BLANKS}|{BLANKS}$"


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
        line_spaces = text_encoder.LINE_SPACES.pattern
        texts = tf.strings.regex_replace(texts, line_spaces, " ")
        texts = tf.strings.regex_replace(texts, ENDS, "")
        return tf.reshape(texts, shape[:2])


@forward_only()
def save_graph(
    model: TextDecoder,
    keras_model: Seq2SeqModel,
    options: DecodeHParams,
    folder: Path,
) -> None:
    """Writes a SavedModel: weights, vocabularies and the signature `translate`, which
    is TensorFlow Serving's default.
    """
    rules = rules_of(options)
    limit = model.max_source_tokens
    longest_target = keras_model.hparams.max_positions or LONGEST_BUCKET
    extra_length = min(options.extra_length, LONGEST_BUCKET)
    n_best = options.return_beams
    source = SentencePieceText(model.source_encoder)
    target = SentencePieceText(model.target_encoder)

    def translate(sentences: Tensor) -> dict[str, Tensor]:
        """The best hypotheses: texts, scores and log-probabilities [B, N]."""
        filled = tf.strings.regex_replace(sentences, f"^{BLANKS}$", "")
        rows = source.encode(filled)
        lengths = tf.cast(rows.row_lengths(), tf.int32) - 1  # [B], the EOS not counted
        longest = tf.reduce_max(tf.concat([lengths, [0]], axis=0))
        message = (
            f"A sentence must have at most {limit:,} tokens. Split it, or leave it"
            " blank. Received, tokens:"
        )
        within = tf.debugging.Assert(longest <= limit, [message, longest])
        with tf.control_dependencies([within]):
            inputs = rows.to_tensor(PAD, shape=[-1, longest + 1])  # [B, S]
        limits = rules.limits(lengths, extra_length, longest)
        # the EOS is one of the decoded tokens; a blank sentence has none
        max_lengths = tf.where(lengths == 0, 0, tf.minimum(limits, longest_target))
        length = tf.reduce_max(tf.concat([max_lengths, [1]], axis=0))  # L
        alpha = options.alpha
        result = search(
            keras_model, options, inputs, max_lengths, length, alpha, n_best, {}
        )
        return {
            "texts": target.decode(result.ids[:, :n_best]),
            "scores": result.scores[:, :n_best],
            "log_probs": result.log_probs[:, :n_best],
        }

    texts = tf.TensorSpec((None,), tf.string)
    signature = tf.function(translate, autograph=False, input_signature=[texts])
    module = tf.Module()
    module.weights = [variable.value for variable in keras_model.trainable_variables]
    module.tokenizers = source.tokenizer, target.tokenizer
    module.translate = signature
    signatures = {"serving_default": signature, "translate": signature}
    tf.saved_model.save(module, str(folder), signatures)
