"""The format ctranslate2: the model directory that CTranslate2 loads, with our
vocabularies.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

from t2tlite.config import DecodeHParams
from t2tlite.decoding.text_decoder import TextDecoder
from t2tlite.programs.export.ctranslate2_engine import (
    FLOAT32,
    PATIENCE,
    QUANTIZATIONS,
    CTranslate2Engine,
    check_expressible,
    import_ctranslate2,
    open_translator,
)
from t2tlite.programs.export.ctranslate2_spec import convert
from t2tlite.programs.export.plan import ExportFormat, ExportPlan
from t2tlite.programs.export.verification import (
    DecodedInOneBatch,
    check_equal,
    count_equal,
    keras_model,
    opened_run,
)
from t2tlite.vocabularies.sentencepiece_encoder import SentencePieceEncoder

ROUNDING = 1e-3  # CTranslate2 rounds matrix products differently

MODEL_USAGE = """\
This folder is a model of CTranslate2, with weights in {quantization}. `pip install
ctranslate2 sentencepiece`, and in this folder:

```python
import ctranslate2
{imports}

translator = ctranslate2.Translator(".", device="auto")
source = {open}("{source}")
target = {open}("{target}")
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


WITH_SENTENCEPIECE = {
    "imports": "import sentencepiece",
    "open": "sentencepiece.SentencePieceProcessor",
    "tokens": "source.encode(sentences, out_type=str)",
    "text": "target.decode(result.hypotheses[0])",
}
WITH_T2TLITE = {
    "imports": (
        "from t2tlite.programs.export.ctranslate2_engine import vocabulary_tokens\n"
        "from t2tlite.vocabularies.encoders import open_encoder"
    ),
    "open": "open_encoder",
    "tokens": (
        "[[vocabulary_tokens(source)[i] for i in source.encode(sentence)]"
        " for sentence in sentences]"
    ),
    "text": "target.decode(map(vocabulary_tokens(target).index, result.hypotheses[0]))",
}


@dataclasses.dataclass(frozen=True)
class CTranslate2Format(ExportFormat):
    """Writes a model directory, with the weights quantised if asked for."""

    name = "ctranslate2"
    supported = CTranslate2Engine.supported
    quantization: str = FLOAT32

    def check(self, plan: ExportPlan) -> None:
        super().check(plan)
        import_ctranslate2()
        if self.quantization not in QUANTIZATIONS:
            raise ValueError(
                f"quantization must be one of {', '.join(QUANTIZATIONS)}. Received:"
                f" {self.quantization!r}."
            )
        check_expressible(plan.hparams)

    def write(self, model: TextDecoder, folder: Path, decoding: DecodeHParams) -> str:
        keras = keras_model(model)
        weights = {}
        for variable in keras.trainable_variables:
            weights[variable.path] = variable.numpy()
        convert(keras.hparams, weights, model.encoders, folder, self.quantization)
        source, target = model.encoders
        learned = all(isinstance(each, SentencePieceEncoder) for each in model.encoders)
        return MODEL_USAGE.format(
            quantization=self.quantization,
            source=source.path.name,
            target=target.path.name,
            beam_size=decoding.beam_size,
            alpha=decoding.alpha,
            patience=PATIENCE,
            extra_length=decoding.extra_length + 1,
            **(WITH_SENTENCEPIECE if learned else WITH_T2TLITE),
        )

    def open(
        self, model: TextDecoder, folder: Path, decoding: DecodeHParams
    ) -> DecodedInOneBatch:
        keras = keras_model(model)
        engine = CTranslate2Engine(
            open_translator(folder, self.quantization),
            model.encoders,
            self.quantization,
            keras.hparams.max_positions,
            keras.count_params(),
            lambda: keras,
        )
        exported = TextDecoder(engine, model.encoders, model.manifest)
        return DecodedInOneBatch(exported, decoding)

    def verify(
        self,
        model: TextDecoder,
        folder: Path,
        decoding: DecodeHParams,
        sentences: list[str],
    ) -> str:
        """Compares the directory with the model: greedy search exactly, unless the
        weights are quantised or the model computes in 16 bits. Otherwise, and for beam
        search, whose searches differ, equal translations are counted.
        """
        greedy = dataclasses.replace(decoding, beam_size=1, return_beams=1)
        exact = self.quantization == keras_model(model).compute_dtype == FLOAT32
        equal = []
        for options in (greedy, decoding):
            run = opened_run(model, options)
            export = self.open(model, folder, options)
            if exact and options is greedy:
                check_equal(run, export, sentences, ROUNDING)
            equal.append(count_equal(run, export, sentences))
        return f"{equal[0]} greedy and {equal[1]} beam-search translations"
