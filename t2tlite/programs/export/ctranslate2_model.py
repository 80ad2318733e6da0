"""The format ctranslate2: the model directory that CTranslate2 loads, with the vocabularies for its tokens."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np

from t2tlite.config import DecodeHParams, HParams
from t2tlite.decoding.text_decoder import TextDecoder
from t2tlite.files.atomic_file import copy_file
from t2tlite.programs.export.compare import check_hypotheses, check_log_probs, decoded, decoded_by_run, scored_by_run
from t2tlite.programs.export.ctranslate2_spec import transformer_spec
from t2tlite.programs.export.settings import Settings
from t2tlite.programs.runs.ctranslate2_decoder import (
    EOS_TOKEN,
    FLOAT32,
    PAD_TOKEN,
    PATIENCE,
    CTranslate2Engine,
    check_expressible,
    check_options,
    check_quantization,
    computable_types,
    import_ctranslate2,
    vocabulary_tokens,
)
from t2tlite.vocabularies.sentencepiece_encoder import SentencePieceEncoder
from t2tlite.vocabularies.text_encoder import TextEncoder

if TYPE_CHECKING:
    from t2tlite.models.transformer import Transformer

LOG_PROB_TOLERANCE = 1e-3  # its matrix products round differently from TensorFlow's
UNKNOWN_TOKEN = "<unk>"  # required by CTranslate2; for tensor2tensor's vocabularies, which have none, it is padding


def convert(
    hparams: HParams,
    weights: Mapping[str, np.ndarray],
    encoders: Sequence[TextEncoder],
    folder: Path,
    quantization: str,
) -> None:
    """Writes model.bin, config.json, CTranslate2's vocabularies and our vocabulary files into a folder.

    `weights` are by their Keras path; `encoders` are of source and target. Raises ValueError if CTranslate2 is not
    installed, cannot compute the model, or there is no such quantization, and KeyError if a weight is missing.
    """
    import_ctranslate2()
    check_quantization(quantization)
    check_expressible(hparams)
    spec = transformer_spec(hparams, weights)
    source, target = map(vocabulary_tokens, encoders)
    spec.register_source_vocabulary(source)
    spec.register_target_vocabulary(target)
    config = spec.config
    config.eos_token = EOS_TOKEN
    config.bos_token = config.decoder_start_token = PAD_TOKEN
    config.unk_token = UNKNOWN_TOKEN if UNKNOWN_TOKEN in source and UNKNOWN_TOKEN in target else PAD_TOKEN
    config.add_source_eos = True
    spec.validate()
    spec.optimize(quantization)
    spec.save(str(folder))
    for encoder in encoders:
        copy_file(encoder.path, folder / encoder.path.name)


def check(model: TextDecoder, settings: Settings) -> None:
    """Raises ValueError for a model, a quantization or a decoding option that CTranslate2 cannot express."""
    import_ctranslate2()
    check_quantization(settings.quantization or FLOAT32)
    check_expressible(_hparams(model))
    check_options(settings.decoding)


def write(model: TextDecoder, folder: Path, settings: Settings) -> Sequence[str]:
    """Writes the model directory; returns paragraphs on its use."""
    weights = {variable.path: variable.numpy() for variable in model.model.trainable_variables}
    convert(_hparams(model), weights, model.encoders, folder, settings.quantization or FLOAT32)
    return _paragraphs(model.encoders, settings)


def verify(model: TextDecoder, folder: Path, settings: Settings, sentences: Sequence[str]) -> str:
    """Loads the directory and compares it with the model.

    Greedy translations and log-probabilities must equal the model's, unless the weights are quantised or the model
    computes in 16 bits; then, and for beam search, equal translations are counted. Raises ValueError for a difference.
    """
    quantization = settings.quantization or FLOAT32
    engine = CTranslate2Engine(folder, model.encoders, model.model.max_positions, quantization)
    exported = TextDecoder(model.model, model.encoders, model.manifest, engine=engine)
    equal = []
    for beam_size in (1, settings.decoding.beam_size):
        options = dataclasses.replace(settings.decoding, beam_size=beam_size, return_beams=1)
        pair = decoded_by_run(model, sentences, options), decoded(exported, sentences, options)
        by_run, by_export = ([n_best[:1] for n_best in each] for each in pair)
        if beam_size == 1 and quantization == model.model.compute_dtype == FLOAT32:
            check_hypotheses(sentences, by_run, by_export)
            targets = [best.text for [best] in by_run]
            log_probs = scored_by_run(model, sentences, targets), exported.score(sentences, targets, DecodeHParams())
            check_log_probs(sentences, *log_probs, tolerance=LOG_PROB_TOLERANCE)
        equal.append(sum(ours.text == theirs.text for [ours], [theirs] in zip(by_run, by_export, strict=True)))
    computed = "" if quantization in computable_types()[1] else f" (in {FLOAT32}, this machine has no {quantization})"
    return f"{equal[0]} greedy and {equal[1]} beam-search translations{computed}"


def _hparams(model: TextDecoder) -> HParams:
    return cast("Transformer", model.model).hparams


def _paragraphs(encoders: Sequence[TextEncoder], settings: Settings) -> list[str]:
    names, options = [encoder.path.name for encoder in encoders], settings.decoding
    if all(isinstance(encoder, SentencePieceEncoder) for encoder in encoders):
        imports = "import sentencepiece\n"
        opened = [f'sentencepiece.SentencePieceProcessor(model_file="{name}")' for name in names]
        tokens, text = "source.encode(sentences, out_type=str)", "target.decode(found.hypotheses[0])"
    else:
        imports = (
            "from t2tlite.programs.runs.ctranslate2_decoder import vocabulary_tokens\n"
            "from t2tlite.vocabularies.encoders import open_encoder\n"
        )
        opened = [f'open_encoder("{name}")' for name in names]
        tokens = "[[vocabulary_tokens(source)[i] for i in source.encode(sentence)] for sentence in sentences]"
        text = "target.decode(map(vocabulary_tokens(target).index, found.hypotheses[0]))"
    program = (
        "```python\n"
        f"import ctranslate2\n{imports}\n"
        'translator = ctranslate2.Translator(".", device="auto")\n'
        f"source = {opened[0]}\ntarget = {opened[1]}\n"
        'sentences = ["A sentence.", "Another one."]\n'
        f"tokens = {tokens}\n"
        "results = translator.translate_batch(\n"
        f"    tokens, beam_size={options.beam_size}, length_penalty={options.alpha}, patience={PATIENCE}, "
        "min_decoding_length=0,\n"
        f"    max_input_length=0, max_decoding_length=max(map(len, tokens)) + {options.extra_length + 1}\n"
        ")\n"
        "for found in results:\n"
        f"    print({text})\n"
        "```"
    )
    return [
        "This folder is a model of CTranslate2, with weights in "
        f"{settings.quantization or FLOAT32}. `pip install ctranslate2 sentencepiece`, and in this folder:",
        program,
        "CTranslate2 adds the end-of-sentence token to each source itself. Its length penalty is length ** "
        "length_penalty, t2tlite's is ((5 + length) / 6) ** alpha, by which `t2t-decoder --engine=ctranslate2` ranks "
        "the hypotheses.",
    ]
