"""Load on t2t-serve over the loopback interface: throughput, equality, memory, bad
requests, SIGTERM.

    make demo
    python benchmarks/serving_load.py runs/demo/grammar_ende

Starts a server for the run, and measures on the sentences of its test split or of
--input_file, one in a request:

  one client, then --clients at a time: requests a second, and latency
  t2t-decoder on a file of the same sentences, without the time in which it loads;
    lines that differ are counted
  --requests requests of random length, a part of them broken off by the client:
    memory of the server before and after
  --malformed requests: their statuses
  SIGTERM while --clients requests are being answered: how many answers came, and the
    exit status

The clients are one process of this machine, and share its cores with the server.
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import json
import multiprocessing
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil
from http_load import Client, load

from t2tlite.decoding.engine import ENGINES, TENSORFLOW
from t2tlite.files.text_files import read_lines, write_lines
from t2tlite.machine import decoding_threads
from t2tlite.programs.runs.load import run_dataset
from t2tlite.run_folder import RunFolder

START_S = 300  # for a server to load its runs
sys.path.insert(
    0, str(Path(__file__).resolve().parents[1] / "tests" / "programs" / "serving")
)
from malformed import MALFORMED, PATHS  # noqa: E402  the cases of the tests


def request_body(text: str) -> bytes:
    return json.dumps({"q": text}).encode()


def translation(body: bytes) -> str:
    return json.loads(body)["translatedText"]


def start_server(run: Path, *flags: str) -> tuple[subprocess.Popen[str], int]:
    """Starts a server of the run at a free port, and waits until it is ready."""
    command = [
        sys.executable,
        "-m",
        "t2tlite.bin.t2t_serve",
        f"--output_dir={run}",
        "--port=0",
        *flags,
    ]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert server.stderr
    for line in server.stderr:
        match = re.search(r"Ready: http://127.0.0.1:(\d+)", line)
        if match:
            return server, int(match[1])
    raise SystemExit(f"The server ended with status {server.wait()}.")


def decoder_outputs(run: Path, sentences: Sequence[str], engine: str) -> list[str]:
    """Returns t2t-decoder's translations of the sentences."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "in.txt"), Path(folder, "out.txt")
        write_lines(source, sentences)
        command = [
            sys.executable,
            "-m",
            "t2tlite.bin.t2t_decoder",
            f"--output_dir={run}",
            f"--engine={engine}",
        ]
        subprocess.run(
            [*command, f"--decode_from_file={source}", f"--decode_to_file={target}"],
            check=True,
        )
        return list(read_lines(target))


def decoder_speed(run: Path, sentences: Sequence[str], engine: str, pipe: Any) -> None:
    """Sends the seconds of decoding the sentences as t2t-decoder does, the search being
    built, and those of CPU time.

    Runs in a process of its own.
    """
    from t2tlite import load as load_model

    model = load_model(run, engine=engine, threads=decoding_threads())
    for count in (1, 2):  # a sentence alone has a search of its own
        model.translate(sentences[:count])
    started, cpu = time.monotonic(), cpu_seconds(psutil.Process())
    model.translate(sentences)
    pipe.send((time.monotonic() - started, cpu_seconds(psutil.Process()) - cpu))


def cpu_seconds(process: psutil.Process) -> float:
    """Returns the CPU time of a process so far."""
    times = process.cpu_times()
    return times.user + times.system


def random_texts(sentences: Sequence[str], count: int) -> list[str]:
    """Draws texts of one to twelve words, and sometimes a paragraph."""
    draw = random.Random(1)
    texts = []
    for _ in range(count):
        if draw.random() < 0.02:
            texts.append(" ".join(draw.choices(sentences, k=draw.randint(2, 6))))
        else:
            texts.append(
                " ".join(draw.choice(sentences).split()[: draw.randint(1, 12)])
            )
    return texts


async def measure(
    args: argparse.Namespace,
    sentences: list[str],
    server: subprocess.Popen[str],
    port: int,
) -> None:
    """Measures and prints."""

    async def translate(client: Client, number: int) -> tuple[int, bytes]:
        return await client.post(
            "/translate", request_body(sentences[number % len(sentences)])
        )

    await load(args.clients, 2 * args.clients, translate, port)  # warm
    print(
        f"load of the machine, of other programs too: {os.getloadavg()[0]:.1f} on"
        f" {os.cpu_count()} cores"
    )
    single = await load(1, args.sentences // 10, translate, port)
    print(f"1 client:    {single}", flush=True)
    texts = [sentences[i % len(sentences)] for i in range(args.sentences)]
    process, rates, best = psutil.Process(server.pid), [], single
    for _ in range(args.repeats):
        cpu = cpu_seconds(process)
        many = await load(args.clients, args.sentences, translate, port)
        cpu = cpu_seconds(process) - cpu
        best = max(best, many, key=lambda result: result.per_second)
        here, there = multiprocessing.Pipe()
        work = (args.run, texts, args.engine, there)
        decoder = multiprocessing.get_context("spawn").Process(
            target=decoder_speed, args=work
        )
        decoder.start()
        seconds, decoder_cpu = await asyncio.get_running_loop().run_in_executor(
            None, here.recv
        )
        rates.append(args.sentences / seconds)
        print(
            f"{args.clients} clients:  {many}; {1000 * cpu / args.sentences:.1f} ms of"
            " CPU time a sentence"
        )
        print(
            f"t2t-decoder: {rates[-1]:.1f} sentences/s;"
            f" {1000 * decoder_cpu / args.sentences:.1f} ms of CPU time"
        )
        print(
            f"the server reaches {many.per_second / rates[-1]:.2f} of t2t-decoder's"
            " speed",
            flush=True,
        )
    print(
        f"best of {args.repeats}: {best.per_second / single.per_second:.1f} times one"
        " client",
        flush=True,
    )
    expected = decoder_outputs(args.run, texts, args.engine)
    differing = sum(
        translation(body) != line
        for body, line in zip(best.bodies, expected, strict=True)
    )
    print(
        f"translations that differ from t2t-decoder's: {differing} of {args.sentences}",
        flush=True,
    )
    await memory(args, sentences, server, port)
    await malformed(args, port)
    await sigterm(args, sentences, server, port)


async def memory(
    args: argparse.Namespace,
    sentences: list[str],
    server: subprocess.Popen[str],
    port: int,
) -> None:
    """Requests of random length."""
    texts = random_texts(sentences, args.requests)
    process = psutil.Process(server.pid)

    async def translate(client: Client, number: int) -> tuple[int, bytes]:
        if number % 50 == 49:
            await client.break_off("/translate", request_body(texts[number]))
            return 0, b""
        return await client.post("/translate", request_body(texts[number]))

    sizes = []
    parts = 5
    for _ in range(parts):
        result = await load(args.clients, args.requests // parts, translate, port)
        sizes.append(process.memory_info().rss >> 20)
    print(
        f"memory after each fifth of {args.requests} requests of random length:"
        f" {sizes} MiB",
        flush=True,
    )
    print(
        f"statuses of the last fifth, 0 for those broken off: {dict(result.statuses)}",
        flush=True,
    )


async def malformed(args: argparse.Namespace, port: int) -> None:
    """Requests that cannot be answered."""
    draw = random.Random(2)
    bodies = [draw.choice(MALFORMED) for _ in range(args.malformed)]
    for i in range(0, len(bodies), 3):  # bytes of good requests, changed
        body = bytearray(
            request_body("The cat sleeps.")
            if draw.random() < 0.5
            else b"q=a&source=en&target=fr"
        )
        for _ in range(3):
            body[draw.randrange(len(body))] = draw.randrange(256)
        bodies[i] = bytes(body)

    async def send(client: Client, number: int) -> tuple[int, bytes]:
        types = (
            "application/json",
            "application/x-www-form-urlencoded",
            "multipart/form-data; boundary=x",
            "text/plain",
        )
        return await client.post(draw.choice(PATHS), bodies[number], draw.choice(types))

    result = await load(8, args.malformed, send, port)
    print(
        f"statuses of {args.malformed} malformed requests:"
        f" {dict(sorted(result.statuses.items()))}",
        flush=True,
    )


async def sigterm(
    args: argparse.Namespace,
    sentences: list[str],
    server: subprocess.Popen[str],
    port: int,
) -> None:
    """Stops the server while it answers."""
    texts = [" ".join(sentences[i : i + 3]) for i in range(args.clients)]
    clients = [Client(port) for _ in texts]
    requests = [
        asyncio.ensure_future(c.post("/translate", request_body(t)))
        for c, t in zip(clients, texts, strict=True)
    ]
    watching = Client(port)
    while True:  # until all are accepted
        _, metrics = await watching.get("/metrics")
        match = re.search(rb"^t2tlite_active_requests (\S+)", metrics, re.MULTILINE)
        unanswered = sum(not request.done() for request in requests)
        if match and float(match[1]) > min(args.clients, unanswered):
            break
    server.send_signal(signal.SIGTERM)
    answers = await asyncio.gather(*requests, return_exceptions=True)
    kinds: collections.Counter[object] = collections.Counter()
    for answer in answers:
        status_or_error = (
            answer[0] if isinstance(answer, tuple) else type(answer).__name__
        )
        kinds[status_or_error] += 1
    loop = asyncio.get_running_loop()
    status = await loop.run_in_executor(None, server.wait, START_S)
    print(
        f"SIGTERM with {args.clients} requests under way: answers {dict(kinds)}, exit"
        f" status {status}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", type=Path)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument(
        "--sentences",
        type=int,
        default=2000,
        help="requests in the measurement of throughput",
    )
    parser.add_argument(
        "--requests",
        type=int,
        default=10_000,
        help="requests in the measurement of memory",
    )
    parser.add_argument("--malformed", type=int, default=1000)
    parser.add_argument(
        "--repeats", type=int, default=3, help="of throughput, in turn with t2t-decoder"
    )
    parser.add_argument(
        "--data_dir", type=Path, help="of the run's data, if it was moved"
    )
    parser.add_argument(
        "--input_file",
        type=Path,
        help="sentences, one a line, instead of the test split",
    )
    parser.add_argument("--engine", choices=ENGINES, default=TENSORFLOW)
    args = parser.parse_args()
    if args.input_file:
        sentences = list(read_lines(args.input_file))
    else:
        sentences = list(
            run_dataset(RunFolder(args.run), args.data_dir).store("test").source_text()
        )
    server, port = start_server(args.run, f"--engine={args.engine}")
    try:
        asyncio.run(measure(args, sentences, server, port))
    finally:
        if server.poll() is None:
            server.kill()


if __name__ == "__main__":
    main()
