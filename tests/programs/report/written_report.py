"""Reports that t2t-report writes in tests, and the records of decoding and of training
that they show.
"""

import json

import tensorflow as tf
from run_command import run_command

from t2tlite.bin import t2t_report

SIGNATURE = "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0"


def record_decodes(run, outputs, options=None, texts=None, **fields):
    """Writes the files of t2t-decoder --split, with these options of decoding and
    fields of the record. `texts` are sources and references by ending: {"src": [...]}.
    """
    record = {
        "format_version": 1,
        "split": "test",
        "step": 120,
        "sentences": len(outputs),
        "scores": {"BLEU": 38.29},
        "signatures": {"BLEU": SIGNATURE},
        "decode_hparams": {"beam_size": 4, "alpha": 0.6, **(options or {})},
        "seconds": 12.34,
        **fields,
    }
    record["checkpoint"] = f"/elsewhere/run/averaged/model.ckpt-{record['step']}"
    name = f"{record['split']}.{record['step']}"
    (run / "decodes").mkdir(exist_ok=True)
    (run / "decodes" / f"{name}.json").write_text(json.dumps(record), encoding="utf-8")
    for ending, lines in {"txt": outputs, **(texts or {})}.items():
        (run / "decodes" / f"{name}.{ending}").write_text(
            "".join(f"{line}\n" for line in lines), encoding="utf-8"
        )


def report(tiny_run, run, *more):
    """The report's HTML and Markdown."""
    run_command(
        t2t_report, f"--output_dir={run}", f"--t2t_usr_dir={tiny_run.package}", *more
    )
    page = (run / "report.html").read_text(encoding="utf-8")
    return page, (run / "report.md").read_text(encoding="utf-8")


def write_events(run, metrics):
    """Puts {tag: {step: value}} in the place of the run's events; a report without
    curves is made quickly.
    """
    for path in run.glob("events.*"):
        path.unlink()
    with tf.summary.create_file_writer(str(run)).as_default():
        for tag, values in metrics.items():
            for step, value in values.items():
                tf.summary.scalar(tag, value, step=step)
