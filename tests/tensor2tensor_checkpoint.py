"""Models of tensor2tensor's for the tests: loaded from fixtures, or written as its
trainer leaves them.
"""

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import tensorflow as tf

from t2tlite.config import HParams
from t2tlite.models.transformer import Transformer
from t2tlite.programs.tensor2tensor.hparams import convert_hparams
from t2tlite.programs.tensor2tensor.variables import embedding_sizes, load_variables

TWO_VOCABULARIES = (
    Path(__file__).parent / "fixtures" / "tensor2tensor_two_vocabularies.npz"
)
# the row of its target space embedding that the fixtures of logits use
TARGET_SPACE = 1


def write_checkpoint(path: Path, variables: dict[str, np.ndarray]) -> Path:
    """Writes TensorFlow's files `path`.index and `path`.data-00000-of-00001 with
    variables of any names.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    names = sorted(variables)
    tf.raw_ops.SaveV2(
        prefix=str(path),
        tensor_names=names,
        shape_and_slices=[""] * len(names),
        tensors=[tf.constant(variables[name]) for name in names],
    )
    return path


def hparams_of(saved: str) -> HParams:
    """Our HParams for tensor2tensor's, as a fixture has them."""
    return convert_hparams(json.loads(str(saved)))[0]


def load(
    hparams: HParams, variables: dict[str, np.ndarray], target_space: int = TARGET_SPACE
) -> Transformer:
    """A model with these variables, whose larger vocabulary is the source's."""
    sizes = embedding_sizes(variables)
    model = Transformer.from_hparams(hparams, sizes[-1], sizes[0])
    load_variables(model, variables, target_space)
    return model


def logits_fixture(
    folder: Path, name: str
) -> tuple[Mapping[str, np.ndarray], Transformer]:
    """The data of a fixture of logits, and the model that computed them."""
    data = np.load(folder / f"transformer_logits_{name}.npz")
    return data, load(hparams_of(data["hparams_json"]), variables_of(data))


def variables_of(
    data: Mapping[str, np.ndarray], prefix: str = "var"
) -> dict[str, np.ndarray]:
    """The variables in a fixture under `prefix`, by the names that a checkpoint has."""
    start = f"{prefix}/"
    return {
        name.removeprefix(start).removesuffix(":0"): data[name]
        for name in data
        if name.startswith(start)
    }


def write_model(
    folder: Path,
    variables: dict[str, np.ndarray],
    hparams: str | dict,
    sizes: tuple[int, ...],
    step: int = 7,
) -> list[str]:
    """A run folder of tensor2tensor's with invented vocabularies of the given sizes;
    returns t2t-import's flags.
    """
    write_checkpoint(folder / f"model.ckpt-{step}", variables)
    text = hparams if isinstance(hparams, str) else json.dumps(hparams)
    (folder / "hparams.json").write_text(text, encoding="utf-8")
    vocabularies = [
        write_vocabulary(folder / f"vocab.{i}.subwords", size)
        for i, size in enumerate(sizes)
    ]
    return [
        f"--t2t_checkpoint={folder}",
        f"--t2t_vocab={','.join(map(str, vocabularies))}",
    ]


def write_vocabulary(path: Path, size: int) -> Path:
    """A vocabulary of `size` subtokens: padding, EOS, the characters that escapes need,
    then words.
    """
    subtokens = ["<pad>", "<EOS>", *"\\_u;0123456789"]
    subtokens += [f"word{i}_" for i in range(size - len(subtokens))]
    path.write_text(
        "".join(f"'{subtoken}'\n" for subtoken in subtokens), encoding="utf-8"
    )
    return path
