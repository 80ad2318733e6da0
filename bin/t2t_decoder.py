"""t2t-decoder translates with a trained run, by beam search.

A file, one sentence a line; as many lines come out, in the same order, blank ones blank:
  t2t-decoder --output_dir=RUN --decode_from_file=in.txt --decode_to_file=out.txt

A split of the data that the run was trained on, scored with sacrebleu:
  t2t-decoder --output_dir=RUN --split=test

What is typed:
  t2t-decoder --output_dir=RUN --decode_interactive

The log-probability of given translations, from a file of lines "source TAB target":
  t2t-decoder --output_dir=RUN --score_file=pairs.tsv

--decode_hparams=beam_size=4,alpha=0.6,extra_length=50,batch_size=1024,return_beams=1 changes how. beam_size=1 is
greedy search; alpha is the length penalty's exponent; a translation has at most extra_length tokens more than its
source; batch_size is in source tokens; return_beams=3 writes the three best of each sentence, a line each:
"line ||| translation ||| score", lines counted from 0 as Moses does. The newest checkpoint of the run is used;
--checkpoint_path=RUN/best, RUN/averaged or RUN/model.ckpt-N names another.

A run that t2t-import made decodes as tensor2tensor's decoder did (t2t_rules=true): batch_size counts sentences,
extra_length is counted from the longest source of a batch, hypotheses without an end mark keep their log-probability
as score, a parser's output stays a sequence, and --score_file gives the mean negative log-probability of a token.

A run of a parsing problem takes words and punctuation separated by spaces, and gives bracketed trees, one a line;
--split scores them as EVALB does. What had to be repaired to make trees of the decoded sequences is counted. A split's
scores also go to RUN/decodes/SPLIT.STEP.json, for t2t-report.
"""

from __future__ import annotations

import dataclasses
import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from tqdm import tqdm

from t2tlite.bin import flags
from t2tlite.files.atomic_file import write_text
from t2tlite.files.text_files import read_lines, write_lines

if TYPE_CHECKING:
    from t2tlite.config import DecodeHParams
    from t2tlite.decoding.translator import Parse, Translation, Translator

    Decoded = Translation | Parse

FLAGS = (
    "output_dir",
    "decode_from_file",
    "decode_to_file",
    "split",
    "decode_interactive",
    "score_file",
    "decode_hparams",
    "checkpoint_path",
    "data_dir",
    "verbosity",
)
MODES = ("decode_from_file", "split", "decode_interactive", "score_file")
SHOWN = 5  # examples printed after a split


def run(args: flags.Args) -> None:
    """Loads the run and does what was asked."""
    from t2tlite import runs
    from t2tlite.decoding import translator

    flags.require(args, "output_dir")
    asked = [mode for mode in MODES if getattr(args, mode)]
    if len(asked) != 1:
        raise flags.CommandError(
            f"One of {', '.join('--' + mode for mode in MODES)} must be given. Received: "
            f"{' and '.join('--' + mode for mode in asked) or 'none'}."
        )
    folder = Path(args.output_dir).expanduser()
    runs.read_hparams(folder)
    options = translator.decode_options(runs.read_manifest(folder)["decode_defaults"], args.decode_hparams)
    if args.decode_to_file and Path(args.decode_to_file).is_dir():  # known before hours of work, not after
        raise ValueError(f"--decode_to_file must be a file. Received: {args.decode_to_file}, which is a folder.")
    lines = list(read_lines(args.decode_from_file)) if args.decode_from_file else []
    pairs = _read_pairs(args.score_file) if args.score_file else []
    model = runs.load(folder, args.checkpoint_path)
    if args.decode_interactive:
        _interactive(model, options)
    elif args.split:
        _decode_split(model, options, folder, args)
    elif args.score_file:
        with _progress(len(pairs)) as bar:
            scores = model.score([s for s, _ in pairs], [t for _, t in pairs], options, bar.update)
        _write(args.decode_to_file, (f"{score:.6f}" for score in scores))
    else:
        found, seconds = _decode(model, lines, options)
        _write(args.decode_to_file, _output(found, options.return_beams))
        print(_speed(model, options, found, seconds), file=sys.stderr)


def _decode_split(model: Translator, options: DecodeHParams, folder: Path, args: flags.Args) -> None:
    from t2tlite import runs
    from t2tlite.tasks.outputs import score_outputs, to_tree
    from t2tlite.trees.tree import format_tree

    data_dir = Path(args.data_dir).expanduser() if args.data_dir else None
    store = runs.run_dataset(folder, data_dir).store(args.split)
    sources, references = store.source_text(), store.target_text()
    found, seconds = _decode(model, sources, options)
    best = [n_best[0] for n_best in found]
    record = folder / "decodes" / f"{args.split}.{model.step}.json"
    target = args.decode_to_file or str(record.with_suffix(".txt"))
    write_lines(target, _output(found, options.return_beams))
    score = score_outputs(model.manifest, sources, references, [d.sequence for d in best])
    for i in _spread(len(sources), SHOWN):
        rows = {"source": sources[i], "translation": best[i].text, "reference": references[i]}
        if _parses(model, options):
            gold = to_tree(model.manifest, references[i], sources[i].split(), fit_tags=False).tree
            rows = {"source": sources[i], "parse": best[i].text, "gold": format_tree(gold)}
        print("".join(f"{label:<11}  {text}\n" for label, text in rows.items()))
    print(f"{score} on {args.split} ({len(sources):,} sentences)\n{score.signature}")
    print(_speed(model, options, found, seconds))
    kind = "trees" if _parses(model, options) else "sequences" if model.is_parser else "translations"
    print(f"Run {folder}, checkpoint {model.checkpoint}, {kind} {target}")
    outcome = {
        "split": args.split,
        "step": model.step,
        "checkpoint": model.checkpoint,
        "sentences": len(sources),
        "scores": score.scores,
        "signature": score.signature,
        "decode_hparams": dataclasses.asdict(options),
        "seconds": round(seconds, 2),
    }
    write_text(record, json.dumps(outcome, indent=2) + "\n")


def _decode(model: Translator, lines: Sequence[str], options: DecodeHParams) -> tuple[list[list[Decoded]], float]:
    decode: Callable[..., Any] = model.parse_n_best if _parses(model, options) else model.translate_n_best
    start = time.monotonic()
    with _progress(sum(bool(line.strip()) for line in lines)) as bar:
        found = decode(lines, options, bar.update)
    return found, time.monotonic() - start


def _parses(model: Translator, options: DecodeHParams) -> bool:
    """Whether trees come out, rather than sequences as they are decoded."""
    return model.is_parser and not options.t2t_rules


def _interactive(model: Translator, options: DecodeHParams) -> None:
    print("Type a sentence; an empty line or Ctrl-D ends.")
    while True:
        try:
            line = input("> ")
        except EOFError:
            print()
            return
        if not line.strip():
            return
        try:
            found = (model.parse_n_best if _parses(model, options) else model.translate_n_best)([line], options)[0]
        except ValueError as error:
            print(error)
            continue
        for decoded in found:
            print(f"{decoded.score:8.3f}  {decoded.text}")


def _read_pairs(path: str) -> list[tuple[str, str]]:
    pairs = []
    for number, line in enumerate(read_lines(path), start=1):
        source, tab, target = line.partition("\t")
        if not tab or "\t" in target:
            raise ValueError(f"Each line must be source TAB target. Received: {path}, line {number}: {line[:60]!r}.")
        pairs.append((source, target))
    return pairs


def _output(found: Sequence[Sequence[Decoded]], return_beams: int) -> Iterable[str]:
    if return_beams == 1:
        return [best[0].text for best in found]
    return [f"{i} ||| {t.text} ||| {t.score:.6f}" for i, n_best in enumerate(found) for t in n_best]


def _write(path: str | None, lines: Iterable[str]) -> None:
    if path:
        write_lines(path, lines)
    else:
        for line in lines:
            print(line)


def _speed(model: Translator, options: DecodeHParams, found: Sequence[Sequence[Decoded]], seconds: float) -> str:
    best = [n_best[0] for n_best in found]
    tokens = sum(len(ids) + 1 for ids in model.target_encoder.encode_batch([decoded.sequence for decoded in best]))
    seconds = max(seconds, 1e-9)
    rates = f"{len(found) / seconds:,.1f} sentences/s, {tokens / seconds:,.0f} target tokens/s"
    lines = [f"{len(found):,} sentences in {seconds:.1f} s, {rates}"]
    if _parses(model, options):
        repairs = [cast("Parse", decoded).repairs for decoded in best]
        kinds, count = sum(repairs, Counter()), sum(map(bool, repairs))
        told = ", ".join(f"{name} {times:,}" for name, times in kinds.most_common())
        lines.append(f"Sequences repaired to make trees: {count:,} of {len(best):,}" + (f" ({told})" if told else ""))
    return "\n".join(lines)


def _progress(total: int) -> tqdm:
    return tqdm(total=total, unit="sentence", desc="decoding", dynamic_ncols=True, leave=False)


def _spread(count: int, wanted: int) -> list[int]:
    """`wanted` indices below `count`, evenly apart."""
    return [i * count // wanted for i in range(wanted)] if count >= wanted else list(range(count))


def main(argv: Sequence[str] | None = None) -> int:
    """The command t2t-decoder."""
    return flags.run_command(__doc__, FLAGS, run, argv)


if __name__ == "__main__":
    raise SystemExit(main())
