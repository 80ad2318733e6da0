"""Two worker processes on one machine train what one process with the same global batches trains."""

import json
import os
import socket
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from t2tlite.bin import t2t_trainer


def free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


@pytest.mark.slow
def test_two_workers_equal_one(made, tmp_path):
    arguments = [
        "--problem=twenty_words",
        "--hparams_set=twenty_words_tiny",
        f"--data_dir={made.data}",
        f"--t2t_usr_dir={made.package}",
        "--train_steps=6",
        "--local_eval_frequency=3",
    ]
    hparams = "layer_prepostprocess_dropout=0.0,batch_size="
    together = tmp_path / "together"
    addresses = [f"127.0.0.1:{port}" for port in free_ports(2)]
    workers = []
    for index in range(2):
        cluster = {"cluster": {"worker": addresses}, "task": {"type": "worker", "index": index}}
        command = [sys.executable, "-m", "t2tlite.bin.t2t_trainer", *arguments]
        command += [f"--hparams={hparams}512", f"--output_dir={together}"]
        environment = {**os.environ, "TF_CONFIG": json.dumps(cluster)}
        workers.append(subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True))
    for worker in workers:
        _, errors = worker.communicate(timeout=300)
        assert worker.returncode == 0, errors
    alone = tmp_path / "alone"
    assert t2t_trainer.main([*arguments, f"--hparams={hparams}1024", f"--output_dir={alone}"]) == 0

    one, two = (tf.train.load_checkpoint(str(folder / "model.ckpt-6")) for folder in (alone, together))
    names = [name for name in one.get_variable_to_shape_map() if name.startswith("model/")]
    assert len(names) > 20
    for name in names:
        np.testing.assert_allclose(two.get_tensor(name), one.get_tensor(name), atol=1e-5, err_msg=name)
    assert (together / "best" / "best.json").is_file()
    assert not list(together.glob(".worker-*"))
