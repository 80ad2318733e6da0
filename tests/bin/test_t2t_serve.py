"""t2t-serve as a command: what it refuses before it loads anything, and a server from
start to SIGTERM.
"""

import signal
import socket
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from run_command import said
from server_process import Process

from t2tlite.bin import t2t_serve
from t2tlite.files.checkpoint_paths import checkpoint_files
from t2tlite.programs.serving.connections import ConnectionLimits
from t2tlite.programs.serving.options import ServerOptions
from t2tlite.programs.serving.server import DrainingServer
from t2tlite.programs.serving.service import DRAINING, READY, Service
from t2tlite.run_folder import RunFolder


@pytest.fixture(autouse=True)
def loads_nothing(monkeypatch):
    """A mistake must be found before the runs are loaded."""
    monkeypatch.setattr(
        DrainingServer, "serve", lambda *_: pytest.fail("the server was started")
    )


def draining_server():
    service = Service(ServerOptions())
    return service, DrainingServer(service, list, ConnectionLimits())


def refused(capsys, *flags):
    out, err = said(capsys, t2t_serve, *flags, status=1)
    assert (out, "Traceback" in err) == ("", False)
    return err


def test_a_run_is_required(capsys):
    assert "--output_dir must be given." in refused(capsys)


def test_languages_that_the_run_does_not_record_are_reported(capsys, tiny_run):
    with socket.create_server(("127.0.0.1", 0)) as other:
        flags = f"--output_dir={tiny_run.run}", f"--port={other.getsockname()[1]}"
        assert "records" not in refused(capsys, *flags)
        assert f"{tiny_run.run} records en-de, and --languages says en-fr" in refused(
            capsys, *flags, "--languages=en-fr"
        )
        tagged = "--languages=en-de:<2de>,en-fr:<2fr>"
        assert "records" not in refused(capsys, *flags, tagged)


def test_a_port_in_use(capsys, tiny_run):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        message = refused(capsys, f"--output_dir={tiny_run.run}", f"--port={port}")
    assert (
        f"--port must be free here. Received: '127.0.0.1' and {port}: [Errno" in message
    )


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("--output_dir=RUN", "Runs must differ in their languages."),
        ("--output_dir=absent", "The run must be a folder that t2t-trainer made."),
        ("--port=70000", "port must be at least 0 and at most 65535. Received: 70000."),
        ("--host=", "--host must be given."),
        ("--api_key=", "--api_key must be given."),
        ("--host=no.such.host.invalid", "--port must be free here. Received: 'no.such.host.invalid'"),
        ("--checkpoint_path=nothing", "nothing"),
        ("--decode_hparams=beam=4", "decode_hparams has no field 'beam'"),
        ("--glossary=absent.tsv", "Received: absent.tsv, which does not exist."),
        ("--glossary=GLOSSARY --engine=ctranslate2", "Received: glossary. Leave it out"),
        ("--glossary=GLOSSARY --languages=en-de:<2de>,en-fr:<2fr>", "--glossary is of one language pair. Received: [ServedPair(run='"),
    ],
)  # fmt: skip
def test_bad_flags(capsys, tiny_run, tmp_path, flag, message):
    glossary = tmp_path / "terms.tsv"
    glossary.write_text("cat\tkatze\n", encoding="utf-8")
    flag = flag.replace("RUN", str(tiny_run.run)).replace("GLOSSARY", str(glossary))
    assert message in refused(capsys, f"--output_dir={tiny_run.run}", *flag.split())


def test_without_the_extra_the_message_says_what_to_install(
    capsys, tiny_run, monkeypatch
):
    monkeypatch.setitem(sys.modules, "fastapi", None)
    for name in list(sys.modules):
        if name.startswith("t2tlite.programs.serving."):
            monkeypatch.delitem(sys.modules, name)
    message = refused(capsys, f"--output_dir={tiny_run.run}")
    assert "fastapi" in message
    assert "pip install 't2tlite[serve]'" in message


@pytest.mark.slow  # starts a process, which loads TensorFlow
def test_a_server_from_start_to_sigterm(tiny_run):
    with Process(f"--output_dir={tiny_run.run}") as server:
        server.line("Loading .*: en to de")
        address = server.line(r"Ready: (http://127\.0\.0\.1:\d+)\n")[1]
        body = {"q": "red cat sees dog"}
        response = httpx.post(f"{address}/translate", json=body, timeout=60)
        assert response.json()["translatedText"]
        assert server.sigterm() == (
            0,
            "SIGTERM: answering what was accepted; once more ends at once.\n",
        )
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{address}/health", timeout=10)


@pytest.mark.slow  # likewise
def test_a_server_that_loads_ends_at_once(tiny_run):
    with Process(f"--output_dir={tiny_run.run}") as server:
        server.line("Loading")
        assert server.sigterm()[0] == -signal.SIGTERM


@pytest.mark.slow  # likewise
def test_a_server_from_sigint_to_a_second_signal(tiny_run):
    """The first lets it answer what was accepted, the second ends it in one line."""
    with Process(f"--output_dir={tiny_run.run}") as server:
        port = int(server.line(r"Ready: http://127\.0\.0\.1:(\d+)\n")[1])
        with socket.create_connection(("127.0.0.1", port)) as client:
            client.sendall(
                b"POST /detect HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n"
                b"Content-Type: application/json\r\nContent-Length: 9\r\n\r\n"
            )
            assert client.recv(1 << 16).startswith(b"HTTP/1.1 100 ")
            server.process.send_signal(signal.SIGINT)
            server.line("SIGINT: answering what was accepted; once more ends at once.")
            assert server.sigterm() == (
                -signal.SIGTERM,
                "SIGTERM: ending before everything is answered.\n",
            )


@pytest.mark.slow  # likewise
def test_a_run_in_place_of_another_while_requests_go(tiny_run, tiny_run_copy, tmp_path):
    """And one that is not there before, a glossary with a mistake, and a server that
    ends while it loads one.
    """
    for path in checkpoint_files(RunFolder(tiny_run_copy).checkpoints()[-1]):
        path.unlink()
    run = tmp_path / "run"
    run.symlink_to(tiny_run.run)
    terms = tmp_path / "terms.tsv"
    terms.write_text("cat\tkatze")
    flags = f"--output_dir={run}", f"--glossary={terms}"
    with (
        ThreadPoolExecutor() as threads,
        Process(*flags, seconds=600) as server,
    ):
        address = server.line(r"Ready: (http://127\.0\.0\.1:\d+)\n")[1]
        ended = threading.Event()

        def ask():
            answers = []
            while not ended.wait(0.05):
                answer = httpx.post(f"{address}/translate?q=red cat", timeout=60)
                answers.append(answer.json())
            return answers

        def reload(path):
            run.unlink()
            run.symlink_to(path)
            server.process.send_signal(signal.SIGHUP)

        def step():
            settings = httpx.get(f"{address}/frontend/settings", timeout=60).json()
            return settings["models"][0]["step"]

        before = step()
        answers = threads.submit(ask)
        reload(tmp_path / "absent")
        server.line("stay. FileNotFoundError: The run must be a folder that")
        assert step() == before
        terms.write_text("cat")
        reload(tiny_run_copy)
        server.line("stay. ValueError: A glossary has lines source TAB target")
        terms.write_text("cat\tkatze")
        reload(tiny_run_copy)
        assert server.line("Loaded anew|old models stay")[0] == "Loaded anew"
        assert step() < before
        ended.set()
        assert all(list(answer) == ["translatedText"] for answer in answers.result())
        reload(tiny_run.run)
        server.line("SIGHUP: loading the runs anew.")
        reload(tiny_run.run)
        status, rest = server.sigterm()
        assert (status, rest.count("SIGHUP")) == (0, 0)


@pytest.mark.parametrize(
    ("before", "now", "status"),
    [(False, False, READY), (True, True, READY), (True, False, DRAINING)],
)
def test_sighup_ends_a_server_whose_terminal_was_closed(
    monkeypatch, before, now, status
):
    monkeypatch.setattr("os.isatty", lambda _: before)
    service, server = draining_server()
    service.status = READY
    monkeypatch.setattr("os.isatty", lambda _: now)
    for _ in range(2 if status == READY else 1):
        server.handle_exit(signal.SIGHUP, None)
    assert service.status == status
    assert server.reloads.qsize() == (status == READY)


def test_signals_are_received_while_the_server_runs():
    _, server = draining_server()
    before = signal.getsignal(signal.SIGHUP)
    with server.capture_signals():
        assert signal.getsignal(signal.SIGHUP) == server.handle_exit
        assert signal.getsignal(signal.SIGTERM) == server.handle_exit
    assert signal.getsignal(signal.SIGHUP) == before


@pytest.mark.parametrize("drains", [False, True])
def test_sigterm_ends_process_1_at_once(monkeypatch, drains):
    """While runs are loaded, and while the server drains. The kernel ignores the default action of signals for process 1, here by a signal
    that does nothing.
    """
    statuses = []
    monkeypatch.setattr("signal.signal", lambda *_: None)
    monkeypatch.setattr("signal.raise_signal", lambda _: None)
    monkeypatch.setattr("os._exit", statuses.append)
    service, server = draining_server()
    if drains:
        service.status = DRAINING
    server.handle_exit(signal.SIGTERM, None)
    assert statuses == [128 + signal.SIGTERM]


@pytest.mark.slow  # likewise
def test_unreadable_checkpoint_ends_the_server_with_a_message(tiny_run_copy):
    for data in tiny_run_copy.glob("model.ckpt-*.data-*"):
        data.write_bytes(data.read_bytes()[:1000])
    with Process(f"--output_dir={tiny_run_copy}") as server:
        server.line("Loading")
        message = server.line("t2t_serve.py: ")
        assert "Traceback" not in message.string
        assert server.status() == 1
