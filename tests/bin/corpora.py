"""Parallel text files for t2t-datagen and t2t-trainer, and the flags that name them."""

import itertools
import random
from pathlib import Path

SMALL = "hidden_size=8,filter_size=8,num_heads=1,num_hidden_layers=1,max_length=32,batch_size=256"


def write_corpora(folder: Path, **counts: int) -> None:
    """Writes NAME.en and NAME.de for each name: so many lines of random words, and
    these in upper case.
    """
    draw, words = random.Random(0), "one two three four five six".split()
    for name, count in counts.items():
        lines = [
            " ".join(draw.choices(words, k=draw.randint(2, 6))) for _ in range(count)
        ]
        source, target = (folder / f"{name}.{language}" for language in ("en", "de"))
        source.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        target.write_text(
            "".join(f"{line.upper()} ß\n" for line in lines), encoding="utf-8"
        )


def datagen_flags(train: str, dev: str) -> list[str]:
    """The flags for files in the current folder, by their names without the language,
    comma-separated.
    """
    names = {"train": train.split(","), "dev": dev.split(",")}
    languages = {"source": "en", "target": "de"}
    return ["--problem=parallel_text", "--vocab_size=320", "--num_processes=1"] + [
        f"--{split}_{side}={','.join(f'{name}.{language}' for name in names[split])}"
        for split, (side, language) in itertools.product(names, languages.items())
    ]
