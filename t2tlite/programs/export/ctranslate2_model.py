"""The format ctranslate2: the model directory that CTranslate2 loads, with our
vocabularies.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from t2tlite.config import DecodeHParams
from t2tlite.decoding.engine import check_supported
from t2tlite.decoding.text_decoder import TextDecoder
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
from t2tlite.programs.export.plan import ExportFormat, ExportPlan
from t2tlite.programs.export.verification import (
    DecodedInOneBatch,
    keras_model,
)
from t2tlite.vocabularies.sentencepiece_encoder import SentencePieceEncoder
from t2tlite.vocabularies.text_encoder import TextEncoder

USAGE = """\
This folder is a model of CTranslate2, with weights in {quantization}. `pip install
ctranslate2 sentencepiece`, and in this folder:

```python
import ctranslate2
{imports}

translator = ctranslate2.Translator(".", device="auto")
source = {source}
target = {target}
sentences = ["A sentence.", "Another one."]
tokens = {tokens}
results = translator.translate_batch(
    tokens, beam_size={beam_size}, length_penalty={alpha}, patience={patience},
    min_decoding_length=0, max_input_length=0,
    max_decoding_length=max(map(len, tokens)) + {extra_length},
)
for result in results:
    print({text})
```

CTranslate2 adds the end-of-sentence token to each source itself. Its length penalty is
length ** length_penalty, t2tlite's is ((5 + length) / 6) ** alpha, by which
`t2t-decoder --engine=ctranslate2` ranks the hypotheses.
"""


@dataclasses.dataclass(frozen=True)
class VocabularyCode:
    """The Python code of the README that uses a kind of vocabulary."""

    imports: str
    opened: str  # {file}: its name
    tokens: str
    text: str


WITH_SENTENCEPIECE = VocabularyCode(
    imports="import sentencepiece",
    opened='sentencepiece.SentencePieceProcessor(model_file="{file}")',
    tokens="source.encode(sentences, out_type=str)",
    text="target.decode(result.hypotheses[0])",
)
WITH_T2TLITE = VocabularyCode(
    imports=(
        "from t2tlite.programs.export.ctranslate2_engine import vocabulary_tokens\n"
        "from t2tlite.vocabularies.encoders import open_encoder"
    ),
    opened='open_encoder("{file}")',
    tokens=(
        "[[vocabulary_tokens(source)[i] for i in source.encode(sentence)]"
        " for sentence in sentences]"
    ),
    text="target.decode(map(vocabulary_tokens(target).index, result.hypotheses[0]))",
)


class CTranslate2Format(ExportFormat):
    """Writes a model directory, with the weights quantised if asked for."""

    name = "ctranslate2"
    quantizes = True

    def check(self, plan: ExportPlan) -> None:
        super().check(plan)
        import_ctranslate2()
        check_quantization(_stored_as(plan))
        check_expressible(plan.hparams)
        check_supported(f"format={self.name}", SUPPORTED, plan.decoding)

    def write(self, model: TextDecoder, folder: Path, plan: ExportPlan) -> str:
        keras = keras_model(model)
        weights = {}
        for variable in keras.trainable_variables:
            weights[variable.path] = variable.numpy()
        quantization = _stored_as(plan)
        convert(keras.hparams, weights, model.encoders, folder, quantization)
        return _usage(model.encoders, plan.decoding, quantization)

    def open(
        self, model: TextDecoder, folder: Path, plan: ExportPlan
    ) -> DecodedInOneBatch:
        return self.open_in(_stored_as(plan), model, folder, plan)

    def open_in(
        self, compute_type: str, model: TextDecoder, folder: Path, plan: ExportPlan
    ) -> DecodedInOneBatch:
        """`open`, to compute in this type."""
        keras = keras_model(model)
        engine = CTranslate2Engine(
            open_translator(folder, compute_type),
            model.encoders,
            compute_type,
            keras.hparams.max_positions,
            keras.count_params(),
            lambda: keras,
        )
        exported = TextDecoder(engine, model.encoders, model.manifest)
        return DecodedInOneBatch(exported, plan.decoding)

    def verify(
        self,
        model: TextDecoder,
        folder: Path,
        plan: ExportPlan,
        sentences: list[str],
    ) -> str:
        """Compares the directory with the model: exactly, unless the weights are
        quantised or the model computes in 16 bits.
        """
        quantization = _stored_as(plan)
        exact = quantization == keras_model(model).compute_dtype == FLOAT32
        equal = self.verify_translations(model, folder, plan, sentences, exact)
        if quantization not in computable_types()[1]:
            equal += f" (in {FLOAT32}, this machine has no {quantization})"
        return equal


def _stored_as(plan: ExportPlan) -> str:
    return plan.quantization or FLOAT32


def _usage(
    encoders: Sequence[TextEncoder], options: DecodeHParams, quantization: str
) -> str:
    code = WITH_SENTENCEPIECE
    for encoder in encoders:
        if not isinstance(encoder, SentencePieceEncoder):
            code = WITH_T2TLITE
    source, target = encoders
    return USAGE.format(
        quantization=quantization,
        imports=code.imports,
        source=code.opened.format(file=source.path.name),
        target=code.opened.format(file=target.path.name),
        tokens=code.tokens,
        text=code.text,
        beam_size=options.beam_size,
        alpha=options.alpha,
        patience=PATIENCE,
        extra_length=options.extra_length + 1,
    )
