"""Mistakes in names, values, files and folders are reported before TensorFlow is
loaded, which takes seconds.
"""

import json
import subprocess
import sys

PROGRAM = """
import importlib, json, sys
for program, flags, message in json.loads(sys.argv[1]):
    status = importlib.import_module(f"t2tlite.bin.{program}").main(flags)
    print(f"{program} {flags}: {message}", flush=True)
    assert status == 1
    assert "tensorflow" not in sys.modules
    print("END", file=sys.stderr)
"""


def test_mistakes(tiny_run, tmp_path):
    run = f"--output_dir={tiny_run.run}"
    absent = f"--output_dir={tmp_path}/absent"
    text = tmp_path / "in.txt"
    text.write_text("red cat\n", encoding="utf-8")
    (tmp_path / "utf16.txt").write_text("red cat\n", encoding="utf-16")
    (tmp_path / "latin1.txt").write_text("café\n", encoding="latin-1")
    names = ["--problem=grammar_ende", "--hparams_set=transformer_tiny"]
    data = f"--data_dir={tmp_path}"
    file = f"--decode_from_file={text}"
    table = ["--problem=grammar_ende", f"--output_dir={tmp_path}/table", data]
    export = ["--format=saved_model", f"--export_dir={tmp_path}/out"]
    theirs = ["--t2t_vocab=absent", f"--output_dir={tmp_path}/imported"]
    mistakes = [
        ("t2t_trainer", ["--problem=gramar", names[1], data], "no problem 'gramar'"),
        ("t2t_trainer", [names[0], "--hparams_set=tini"], "no hparam set 'tini'"),
        ("t2t_trainer", [*names, "--hparams=x=1"], "hparams has no field 'x'"),
        ("t2t_trainer", [*names, "--random_seed=-1"], "random_seed must be at least 0"),
        ("t2t_trainer", [*names, data], "There is no finished data of grammar_ende"),
        (
            "t2t_trainer",
            [*names, data, f"--warm_start_from={tmp_path}/absent"],
            "There is no checkpoint at",
        ),
        ("t2t_datagen", ["--problem=paralel_text"], "Did you mean 'parallel_text'"),
        ("t2t_datagen", ["--problem=parallel_text"], "needs files for train"),
        ("t2t_decoder", [absent, file], "The run must be a folder"),
        ("t2t_decoder", [run, "--split=tets"], "must be dev or test"),
        ("t2t_decoder", [run, "--decode_from_file=absent"], "absent, which does not"),
        ("t2t_decoder", [run, "--decode_from_file=utf16.txt"], "Received: UTF-16"),
        ("t2t_decoder", [run, "--score_file=latin1.txt"], "line 1: text must be UTF-8"),
        ("t2t_decoder", [run, file, "--checkpoint_path=7"], "There is no checkpoint"),
        ("t2t_decoder", [run, file, "--decode_hparams=beam=2"], "no field 'beam'"),
        ("t2t_decoder", [run, file, "--split=test"], "One of --decode_from_file"),
        ("t2t_export", [absent, *export], "The run must be a folder"),
        ("t2t_export", [run, *export, "--checkpoint_path=7"], "There is no checkpoint"),
        ("t2t_report", [absent], "The run must be a folder"),
        ("t2t_attention", [absent, "--source=a"], "The run must be a folder"),
        ("t2t_attention", [run, "--source=a", "--html=a.svg"], "must end in .html"),
        ("t2t_avg_checkpoints", [absent], "The run must be a folder"),
        ("t2t_table3", [*table, "--rows=x"], "Received: 'x'"),
        ("t2t_table3", [*table, "--seeds=5000000000"], "must be at least 0"),
        ("t2t_table3", table, "There is no finished data"),
        ("t2t_import", ["--t2t_checkpoint=absent", *theirs], "no checkpoint at"),
        ("t2t_serve", [absent], "The run must be a folder"),
    ]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(mistakes)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-300:] + done.stderr
    messages = done.stderr.split("END\n")
    assert len(messages) == len(mistakes) + 1
    for (program, flags, expected), message in zip(mistakes, messages, strict=False):
        assert expected in message, (program, flags)
