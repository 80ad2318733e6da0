"""The weights of a MarianMTModel compute what the Transformer that they were made of
does; the model is in NumPy here, as modeling_marian.py of Transformers defines it.
"""

# S source length, T target length, D hidden size

from __future__ import annotations

import numpy as np
import pytest
from numpy_softmax import log_softmax, softmax
from tiny_transformer import SOURCES, TARGETS, UNSHARED, VOCAB, make_transformer

from t2tlite.config import HParams
from t2tlite.programs.export.marian_weights import check_expressible, marian_weights

SIZE = 20  # ids of the MarianMTModel, more than either vocabulary has
START = SIZE - 1


class NumpyMarian:
    """A MarianMTModel with scale_embedding, at double precision, sentence by
    sentence.
    """

    def __init__(self, state: dict[str, np.ndarray], heads: int) -> None:
        self.state = {name: array.astype(np.float64) for name, array in state.items()}
        self.heads = heads

    def logits(self, source: np.ndarray, target: np.ndarray) -> np.ndarray:
        shared = self.state.get("model.shared.weight")
        tables = []
        for name in ("model.encoder.embed_tokens", "model.decoder.embed_tokens"):
            tables.append(self.state.get(f"{name}.weight", shared))
        head = self.state.get("lm_head.weight", shared)
        memory = self.embed(tables[0], source)
        for i in range(self.depth("encoder")):
            memory = self.layer(f"model.encoder.layers.{i}", memory)
        x = self.embed(tables[1], np.array([START, *target[:-1]]))
        for i in range(self.depth("decoder")):
            x = self.layer(f"model.decoder.layers.{i}", x, memory)
        return x @ head.T + self.state["final_logits_bias"]

    def depth(self, side: str) -> int:
        names = [name for name in self.state if name.startswith(f"model.{side}.layers")]
        return len({name.split(".")[3] for name in names})

    def embed(self, table: np.ndarray, ids: np.ndarray) -> np.ndarray:
        """Position vectors have all sines, then all cosines."""
        size = table.shape[1]
        rates = 10000 ** (-2 * np.arange(size // 2) / size)
        angles = np.arange(len(ids))[:, None] * rates
        positions = np.concatenate([np.sin(angles), np.cos(angles)], -1)
        return table[ids] * size**0.5 + positions

    def layer(self, name: str, x: np.ndarray, memory: np.ndarray | None = None):
        seen = np.ones((len(x), len(x)))
        if memory is not None:
            seen = np.tri(len(x))
        x = self.norm(
            f"{name}.self_attn_layer_norm",
            x + self.attend(f"{name}.self_attn", x, x, seen),
        )
        if memory is not None:
            all_seen = np.ones((len(x), len(memory)))
            x = self.norm(
                f"{name}.encoder_attn_layer_norm",
                x + self.attend(f"{name}.encoder_attn", x, memory, all_seen),
            )
        inner = np.maximum(self.linear(f"{name}.fc1", x), 0)
        return self.norm(
            f"{name}.final_layer_norm", x + self.linear(f"{name}.fc2", inner)
        )

    def attend(self, name, x, memory, seen) -> np.ndarray:
        parts = []
        for part, y in (("q", x), ("k", memory), ("v", memory)):
            projected = self.linear(f"{name}.{part}_proj", y)
            parts.append(projected.reshape(len(y), self.heads, -1).swapaxes(0, 1))
        q, k, v = parts
        scores = q @ k.swapaxes(1, 2) / q.shape[-1] ** 0.5
        weights = softmax(np.where(seen, scores, -1e9))
        heads = (weights @ v).swapaxes(0, 1).reshape(len(x), -1)
        return self.linear(f"{name}.out_proj", heads)

    def linear(self, name: str, x: np.ndarray) -> np.ndarray:
        return x @ self.state[f"{name}.weight"].T + self.state[f"{name}.bias"]

    def norm(self, name: str, x: np.ndarray) -> np.ndarray:
        """The epsilon is that of PyTorch's LayerNorm."""
        centred = x - x.mean(-1, keepdims=True)
        x = centred / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
        return x * self.state[f"{name}.weight"] + self.state[f"{name}.bias"]


@pytest.mark.parametrize(
    ("changes", "tolerance"),
    [
        ("norm_epsilon=1e-5", 1e-5),
        ("norm_epsilon=1e-6", 1e-4),  # the first sublayers keep 1e-5
        ("norm_epsilon=0", 1e-4),
        (f"norm_epsilon=1e-5,{UNSHARED}", 1e-5),
        ("norm_epsilon=1e-5,num_encoder_layers=3,num_decoder_layers=1", 1e-5),
    ],
)
def test_log_probabilities_are_the_models(changes, tolerance):
    model = make_transformer(changes, layers=2)
    weights = {each.path: each.numpy() for each in model.trainable_variables}
    state = marian_weights(model.hparams, weights, SIZE)
    assert {array.dtype for array in state.values()} == {np.dtype("float32")}
    marian = NumpyMarian(state, model.hparams.num_heads)
    expected = log_softmax(np.asarray(model(SOURCES, TARGETS)))
    for source, target, ours in zip(SOURCES, TARGETS, expected, strict=True):
        length = np.count_nonzero(target)
        theirs = log_softmax(marian.logits(source[source > 0], target[:length]))
        np.testing.assert_allclose(theirs[:, :VOCAB], ours[:length], atol=tolerance)
        assert theirs[:, VOCAB:].max() < -1e4


@pytest.mark.parametrize(
    ("changes", "received"),
    [
        (
            "layer_preprocess_sequence=n,layer_postprocess_sequence=da",
            "layer_preprocess_sequence=n instead of none",
        ),
        ("pos=timing_halves", "pos=timing_halves instead of timing"),
        ("pos=emb", "pos=emb instead of timing"),
        ("self_attention_radius=4", "self_attention_radius=4 instead of 0"),
        (
            "use_target_space_embedding=true",
            "use_target_space_embedding=True instead of False",
        ),
        ("attention_key_channels=128", "key_channels=128 instead of 512"),
        ("norm_epsilon=0.01", "norm_epsilon=0.01 instead of 1e-05"),
    ],
)
def test_what_a_marian_model_cannot_compute_is_refused(changes, received):
    with pytest.raises(ValueError, match=rf"Received: a model with {received}\."):
        check_expressible(HParams().override(changes))


def test_channels_of_the_width_may_be_given():
    check_expressible(HParams().override("attention_key_channels=512"))
