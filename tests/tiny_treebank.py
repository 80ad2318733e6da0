"""A small Penn Treebank, and a folder of trees of one's own, all of one pattern."""

from pathlib import Path

# As the Penn Treebank has it: several lines, no label outside, a function tag with an
# index, a trace.
RAW = """
( (S
    (NP-SBJ-1 (DT The) (NN {noun}) )
    (VP (VBD was)
      (VP (VBN seen)
        (NP (-NONE- *-1) )
        (PP-LOC (IN in)
          (NP (DT the) (NN {place}) ))))
    (. .) ))
"""
WORDS = "The {noun} was seen in the {place} ."
CLEAN = (
    "(TOP (S (NP (DT The) (NN {noun})) (VP (VBD was) (VP (VBN seen) (PP (IN in) (NP (DT"
    " the) (NN {place}))))) (. .)))"
)
WRITTEN = {
    "normalised": (
        "(S (NP XX XX )NP (VP XX (VP XX (PP XX (NP XX XX )NP )PP )VP )VP . )S"
    ),
    "tags": "(S (NP DT NN )NP (VP VBD (VP VBN (PP IN (NP DT NN )NP )PP )VP )VP . )S",
    "words": (
        "(S (NP The {noun} )NP (VP was (VP seen (PP in (NP the {place} )NP )PP )VP )VP"
        " . )S"
    ),
    "t2t": "S NP DT NN /NP VP VBD VP VBN PP IN NP DT NN /NP /PP /VP /VP . /S",
}
SYMBOLS = (
    {"."}
    | {f"({label}" for label in ("NP", "PP", "S", "VP")}
    | {f"){label}" for label in ("NP", "PP", "S", "VP")}
)
HEADER = "*x*x*x*x*x*x*\n*x*  Copyright of the Treebank  *x*\n*x*x*x*x*x*x*\n"


def filled(text: str, number: str) -> str:
    """One of the texts above with nouns of its own."""
    return text.format(noun=f"noun{number}", place=f"place{number}")


def treebank(tmp_path: Path) -> Path:
    """Every section of LDC99T42, two files of two trees each; the sentences name
    section and file.
    """
    for section in range(25):
        folder = tmp_path / "LDC99T42" / "parsed" / "mrg" / "wsj" / f"{section:02}"
        folder.mkdir(parents=True)
        for file in (98, 99):
            trees = [filled(RAW, f"{section:02}{file}{letter}") for letter in "ab"]
            (folder / f"wsj_{section:02}{file}.mrg").write_text(HEADER + "".join(trees))
        (folder / "readme").write_text("no trees\n")
    return tmp_path / "LDC99T42"


def own_trees(tmp_path: Path) -> Path:
    """Trees of one's own: plain files, 120 to train on."""
    folder = tmp_path / "trees"
    folder.mkdir()
    for split, count in (("train", 120), ("dev", 6), ("test", 4)):
        (folder / f"{split}.trees").write_text(
            "".join(f"{filled(CLEAN, f'{split}{i}')}\n" for i in range(count))
        )
    return folder
