"""What each result of the paper costs to train, by formula: Tables 2 to 4, for
docs/paper-tables.md.

    python benchmarks/paper_tables.py [--docs=docs]

Counts the floating-point operations of each row as `t2t-trainer` does, on the paper's
batches. Hours are those at the utilisation that the paper's base model reached. With
--docs it puts the tables into FOLDER/paper-tables.md, with what FOLDER/table3.md has
measured on a small scale.
"""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import NamedTuple

import document
import program

import t2tlite.hparams  # noqa: F401  registers the sets
from t2tlite import registry
from t2tlite.config import HParams
from t2tlite.console import markdown_table
from t2tlite.programs.table3.rows import ROWS
from t2tlite.training.cost import flops_per_step

BATCH_TOKENS = 25_000  # of source, and as many of target: section 5.1
NEWS = (28, 28)  # mean tokens of a source and a target sentence, EOS included
TREES = (18, 47)  # of a sentence of GUM and its normalised linearisation
# section 5.2: time of a step of the base model, on so many P100
BASE_SECONDS, GPUS = 0.4, 8
P100_TFLOPS = 9.5  # footnote 5: sustained, single precision
# measured on one H200 with --hparams=jit_compile=true: docs/performance.md
H200_BASE_TFLOPS, H200_BIG_TFLOPS = 196, 344
BIG_HIDDEN_SIZE = 1024


class Experiment(NamedTuple):
    """A result of the paper: an hparam set trained on a corpus."""

    result: str
    paper: str
    hparams_set: str
    corpus: str
    vocab_size: int
    lengths: tuple[int, int] = NEWS


EN_DE, EN_FR, WSJ = (
    "WMT 2014 En-De, 4.5 million pairs",
    "WMT 2014 En-Fr, 36 million pairs",
    "WSJ, 40,000 trees",
)
TABLE_2 = (
    Experiment("base, En-De", "27.3", "transformer_base", EN_DE, 37_000),
    Experiment("base, En-Fr", "38.1", "transformer_base", EN_FR, 32_000),
    Experiment("big, En-De", "28.4", "transformer_big", EN_DE, 37_000),
    Experiment("big, En-Fr", "41.8", "transformer_big_enfr", EN_FR, 32_000),
)
TABLE_4 = (
    Experiment("WSJ only", "91.3", "transformer_parsing_wsj", WSJ, 16_000, TREES),
    Experiment(
        "semi-supervised",
        "92.7",
        "transformer_parsing_semi",
        f"{WSJ}, and 17 million",
        32_000,
        TREES,
    ),
)


def main() -> None:
    """Prints the tables, or puts them into the documents."""
    parser = program.argument_parser(__doc__)
    parser.add_argument(
        "--docs",
        type=Path,
        help="folder of the documents whose tables are to be made again",
    )
    args = parser.parse_args()
    docs = args.docs or document.DOCS
    for name, text in tables(docs).items():
        print(f"{name}\n\n{text}\n")
        if args.docs:
            document.replace_block(docs / "paper-tables.md", name, text)


def tables(docs: Path) -> dict[str, str]:
    """Returns the text of each block of paper-tables.md, by its name."""
    measured = small_scale((docs / "table3.md").read_text(encoding="utf-8"))
    rows_of_3 = []
    for row in ROWS:
        perplexity, bleu = measured[row.name]
        flops = training_flops(row.apply(HParams()), 37_000, NEWS)
        papers = (f"{row.perplexity:.2f}", f"{row.bleu:.1f}")
        rows_of_3.append(
            [
                f"{row.label} {row.name}".strip(),
                *papers,
                perplexity,
                bleu,
                *costs(flops, row.apply(HParams())),
            ]
        )
    cost = ["FLOPs", "P100-hours", "H200-hours"]
    setup = ["hparam set", "needs"]
    columns = ["row", "PPL in the paper", "BLEU", "PPL on a small scale", "BLEU", *cost]
    return {
        "table 2": markdown_table(
            ["model", *setup, "BLEU in the paper", *cost],
            experiments(TABLE_2),
            labels=3,
        ),
        "table 3": markdown_table(columns, rows_of_3, labels=1),
        "table 4": markdown_table(
            ["training", *setup, "F1 in the paper", *cost],
            experiments(TABLE_4),
            labels=3,
        ),
    }


def experiments(rows: tuple[Experiment, ...]) -> list[list[str]]:
    """Returns the lines of a table of experiments."""
    lines = []
    for row in rows:
        hparams = registry.get_hparams(row.hparams_set)
        flops = training_flops(hparams, row.vocab_size, row.lengths)
        setup = [row.result, f"`{row.hparams_set}`", row.corpus, row.paper]
        lines.append([*setup, *costs(flops, hparams)])
    return lines


def training_flops(
    hparams: HParams, vocab_size: int, lengths: tuple[int, int]
) -> float:
    """Counts the floating-point operations of training on the paper's batches."""
    hparams = dataclasses.replace(hparams, batch_size=BATCH_TOKENS)
    return hparams.train_steps * flops_per_step(hparams, vocab_size, lengths)


def utilisation() -> float:
    """Returns the share of a P100's capacity (footnote 5) that the paper's base model
    used.
    """
    flops = training_flops(dataclasses.replace(HParams(), train_steps=1), 37_000, NEWS)
    return flops / (BASE_SECONDS * GPUS * P100_TFLOPS * 1e12)


def costs(flops: float, hparams: HParams) -> list[str]:
    """Returns the cells of FLOPs, of P100 hours at the paper's utilisation, and of H200
    hours at the rate that was measured for base, or for big if the model is as wide.
    """
    p100 = utilisation() * P100_TFLOPS
    wide = hparams.hidden_size >= BIG_HIDDEN_SIZE
    h200 = H200_BIG_TFLOPS if wide else H200_BASE_TFLOPS
    cells = [f"{flops:.2g}"]
    for tflops in (p100, h200):
        hours = flops / (tflops * 1e12) / 3600
        cells.append(f"{hours:,.0f}" if hours >= 10 else f"{hours:.1f}")
    return cells


def small_scale(text: str) -> dict[str, tuple[str, str]]:
    """Reads perplexity and BLEU of each row from a document that `t2t-table3` wrote;
    "not measured" for a blank cell.
    """
    results = {}
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) > 7 and re.fullmatch(r"\w+", cells[1]):
            results[cells[1]] = (
                cells[4] or "not measured",
                cells[5] or "not measured",
            )
    return results


if __name__ == "__main__":
    main()
