"""The format ctranslate2: the model directory that CTranslate2 loads, with our
vocabularies.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from t2tlite.decoding.engine import check_supported
from t2tlite.decoding.text_decoder import TextDecoder
from t2tlite.programs.export import compare
from t2tlite.programs.export.ctranslate2_engine import (
    FLOAT32,
    PATIENCE,
    SUPPORTED,
    CTranslate2Engine,
    check_expressible,
    check_quantization,
    computable_types,
    import_ctranslate2,
    open_translator,
)
from t2tlite.programs.export.ctranslate2_spec import convert
from t2tlite.programs.export.formats import Settings
from t2tlite.vocabularies.sentencepiece_encoder import SentencePieceEncoder
from t2tlite.vocabularies.text_encoder import TextEncoder

LOG_PROB_TOLERANCE = 1e-3  # its matrix products round differently from TensorFlow's


def check(model: TextDecoder, settings: Settings) -> None:
    """Raises ValueError for a model, a quantization or a decoding option that
    CTranslate2 cannot express.
    """
    import_ctranslate2()
    check_quantization(settings.quantization or FLOAT32)
    check_expressible(compare.keras_model(model).hparams)
    check_supported("--format=ctranslate2", SUPPORTED, settings.decoding)


def write(model: TextDecoder, folder: Path, settings: Settings) -> Sequence[str]:
    """Writes the model directory; returns paragraphs on its use."""
    keras = compare.keras_model(model)
    weights = {
        variable.path: variable.numpy() for variable in keras.trainable_variables
    }
    convert(
        keras.hparams, weights, model.encoders, folder, settings.quantization or FLOAT32
    )
    return _paragraphs(model.encoders, settings)


def verify(
    model: TextDecoder, folder: Path, settings: Settings, sentences: Sequence[str]
) -> str:
    """Loads the directory and compares it with the model.

    Greedy translations and log-probabilities must equal the model's (ValueError),
    unless the weights are quantised or the model computes in 16 bits; then, and for
    beam search, equal translations are counted.
    """
    quantization = settings.quantization or FLOAT32
    keras = compare.keras_model(model)
    engine = CTranslate2Engine(
        open_translator(folder, quantization),
        model.encoders,
        quantization,
        keras.hparams.max_positions,
        keras.count_params(),
        lambda: keras,
    )
    models = (
        compare.by_tensorflow(model),
        TextDecoder(engine, model.encoders, model.manifest),
    )
    equal = []
    for beam_size in (1, settings.decoding.beam_size):
        options = dataclasses.replace(
            settings.decoding, beam_size=beam_size, return_beams=1
        )
        by_run = compare.decoded(models[0], sentences, options)
        by_run = [n_best[:1] for n_best in by_run]
        by_export = compare.decoded(models[1], sentences, options)
        by_export = [n_best[:1] for n_best in by_export]
        if beam_size == 1 and quantization == keras.compute_dtype == FLOAT32:
            compare.check_hypotheses(sentences, by_run, by_export)
            targets = [best.text for [best] in by_run]
            ours = compare.scored(models[0], sentences, targets)
            theirs = compare.scored(models[1], sentences, targets)
            compare.check_log_probs(sentences, ours, theirs, LOG_PROB_TOLERANCE)
        equal.append(
            sum(
                first.text == second.text
                for [first], [second] in zip(by_run, by_export, strict=True)
            )
        )
    computed = (
        ""
        if quantization in computable_types()[1]
        else f" (in {FLOAT32}, this machine has no {quantization})"
    )
    return f"{equal[0]} greedy and {equal[1]} beam-search translations{computed}"


def _paragraphs(encoders: Sequence[TextEncoder], settings: Settings) -> list[str]:
    names, options = [encoder.path.name for encoder in encoders], settings.decoding
    if all(isinstance(encoder, SentencePieceEncoder) for encoder in encoders):
        imports = "import sentencepiece\n"
        opened = [
            f'sentencepiece.SentencePieceProcessor(model_file="{name}")'
            for name in names
        ]
        tokens, text = (
            "source.encode(sentences, out_type=str)",
            "target.decode(result.hypotheses[0])",
        )
    else:
        imports = (
            "from t2tlite.programs.export.ctranslate2_engine import"
            " vocabulary_tokens\nfrom t2tlite.vocabularies.encoders import"
            " open_encoder\n"
        )
        opened = [f'open_encoder("{name}")' for name in names]
        tokens = (
            "[[vocabulary_tokens(source)[i] for i in source.encode(sentence)] for"
            " sentence in sentences]"
        )
        text = (
            "target.decode(map(vocabulary_tokens(target).index, result.hypotheses[0]))"
        )
    program = (
        f"```python\nimport ctranslate2\n{imports}\ntranslator ="
        f' ctranslate2.Translator(".", device="auto")\nsource = {opened[0]}\ntarget ='
        f' {opened[1]}\nsentences = ["A sentence.", "Another one."]\ntokens ='
        f" {tokens}\nresults = translator.translate_batch(\n    tokens,"
        f" beam_size={options.beam_size}, length_penalty={options.alpha},"
        f" patience={PATIENCE}, min_decoding_length=0,\n    max_input_length=0,"
        " max_decoding_length=max(map(len, tokens)) +"
        f" {options.extra_length + 1}\n)\nfor result in results:\n   "
        f" print({text})\n```"
    )
    return [
        (
            "This folder is a model of CTranslate2, with weights in"
            f" {settings.quantization or FLOAT32}. `pip install ctranslate2"
            " sentencepiece`, and in this folder:"
        ),
        program,
        (
            "CTranslate2 adds the end-of-sentence token to each source itself. Its"
            " length penalty is length ** length_penalty, t2tlite's is ((5 + length) /"
            " 6) ** alpha, by which `t2t-decoder --engine=ctranslate2` ranks the"
            " hypotheses."
        ),
    ]
