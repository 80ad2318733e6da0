"""The formats of exports by name: what each refuses, how it is written, how it is verified.

A format is three functions in a module of its own, for the model of any run. It refuses what it cannot express, naming
it, before anything is written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from t2tlite.decoding.text_decoder import TextDecoder
from t2tlite.programs.export import ctranslate2_model, keras_file, saved_model
from t2tlite.programs.export.settings import Settings


class Format(NamedTuple):
    """A format of exports."""

    check: Callable[[TextDecoder, Settings], None]
    # ^ raises ValueError, naming what the format cannot express, or ImportError for a missing package
    write: Callable[[TextDecoder, Path, Settings], Sequence[str]]
    # ^ writes the files into an empty folder, and returns paragraphs of the README on their content and use
    verify: Callable[[TextDecoder, Path, Settings, Sequence[str]], str]
    # ^ compares the output of what was written with the model's; returns what was compared, or raises ValueError


FORMATS: dict[str, Format] = {
    "saved_model": Format(saved_model.check, saved_model.write, saved_model.verify),
    "keras": Format(keras_file.check, keras_file.write, keras_file.verify),
    "ctranslate2": Format(ctranslate2_model.check, ctranslate2_model.write, ctranslate2_model.verify),
}


def find_format(name: str) -> Format:
    """The format of this name; ValueError with the choices if there is none."""
    if name not in FORMATS:
        raise ValueError(f"--format must be one of {', '.join(FORMATS)}. Received: {name!r}.")
    return FORMATS[name]
