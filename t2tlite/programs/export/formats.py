"""The formats of exports by name: what each refuses, how it is written, how it is
verified.

A format is three functions in a module of its own, for the model of any run. It refuses
what it cannot express, naming it, before anything is written.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from t2tlite.config import DecodeHParams
from t2tlite.decoding.text_decoder import TextDecoder


@dataclasses.dataclass(frozen=True)
class Settings:
    """The user's choices for an export, the same for all formats."""

    decoding: DecodeHParams  # the export's defaults, if it includes the search
    quantization: str = ""  # of the weights; "" leaves them as they are

    def refuse_quantization(self, name: str) -> None:
        """Raises ValueError if a quantization was chosen with the format `name`, which
        has none.
        """
        if self.quantization:
            raise ValueError(
                "--quantization goes with --format=ctranslate2. Received:"
                f" --quantization={self.quantization} with --format={name}, which keeps"
                " the weights as they are. Leave it out."
            )


class Format(NamedTuple):
    """A format of exports."""

    check: Callable[[TextDecoder, Settings], None]
    # ^ raises ValueError, naming what the format cannot express, or ImportError for a
    # missing package
    write: Callable[[TextDecoder, Path, Settings], Sequence[str]]
    # ^ writes the files into an empty folder, and returns paragraphs of the README on
    # their content and use
    verify: Callable[[TextDecoder, Path, Settings, Sequence[str]], str]
    # ^ compares the output of what was written with the model's; returns what was
    # compared, or raises ValueError


# The module of each format. It loads TensorFlow, so it is imported when it is needed.
FORMATS = {
    "saved_model": "t2tlite.programs.export.saved_model",
    "keras": "t2tlite.programs.export.keras_file",
    "ctranslate2": "t2tlite.programs.export.ctranslate2_model",
}


def check_format(name: str) -> None:
    """Raises ValueError with the choices if there is no format of this name."""
    if name not in FORMATS:
        raise ValueError(
            f"--format must be one of {', '.join(FORMATS)}. Received: {name!r}."
        )


def find_format(name: str) -> Format:
    """The format of this name. Raises as `check_format`."""
    check_format(name)
    module = importlib.import_module(FORMATS[name])
    return Format(module.check, module.write, module.verify)
