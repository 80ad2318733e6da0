"""The server's start: example sentences of a run, runs that cannot be loaded, sockets
and open files.
"""

import socket
import weakref
from concurrent.futures import ThreadPoolExecutor
from unittest.mock import Mock

import pytest
from raw_peers import until
from running import WAIT_S, Gated, running, served
from tiny_run import change_manifest

from t2tlite.programs.runs.load import run_dataset
from t2tlite.programs.serving import models
from t2tlite.programs.serving.models import MAX_EXAMPLE, Catalogue, example_sentences
from t2tlite.programs.serving.options import ServedRunOptions, ServerOptions
from t2tlite.programs.serving.server import allowed_connections, bind, load_anew, serve
from t2tlite.run_folder import RunFolder

resource = pytest.importorskip("resource", reason="not on Windows")


def test_examples_are_short_sources_of_dev(tiny_run, monkeypatch):
    sources = run_dataset(RunFolder(tiny_run.run)).store("dev").source_text()
    examples = example_sentences(str(tiny_run.run))
    assert len(set(examples)) == models.MAX_EXAMPLES
    assert {*examples} <= {source for source in sources if len(source) <= MAX_EXAMPLE}
    monkeypatch.setattr(models, "MAX_EXAMPLE", 1)
    assert example_sentences(str(tiny_run.run)) == ()


def test_examples_of_a_tag_are_shown_without_it(tiny_run):
    sources = run_dataset(RunFolder(tiny_run.run)).store("dev").source_text()
    examples = example_sentences(str(tiny_run.run), "red")
    assert examples
    assert {f"red {sentence}" for sentence in examples} <= {*sources}


def test_data_that_is_gone_gives_no_examples(tiny_run_copy, tmp_path):
    change_manifest(tiny_run_copy, data_dir=str(tmp_path / "gone"))
    assert example_sentences(str(tiny_run_copy)) == ()


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (SystemExit(0), r"The runs must be loaded\. Received: SystemExit\(0\) mean"),
        (ValueError("a damaged run"), "a damaged run"),
    ],
)
def test_loader_that_ends_ends_the_server(tiny_run, monkeypatch, error, message):
    """`sys.exit` in a user's package too, which would leave a server that loads."""

    def fail(*_):
        raise error

    monkeypatch.setattr("sys.setswitchinterval", lambda seconds: None)
    monkeypatch.setattr(models, "load_catalogue", fail)
    with pytest.raises(ValueError, match=message):
        serve(ServedRunOptions(output_dir=(str(tiny_run.run),)), ServerOptions(port=0))


def test_requests_under_way_end_with_the_models_they_began_with(
    translator, monkeypatch, tmp_path
):
    """And with the API key, also if the log cannot be written."""
    key = tmp_path / "key"
    key.write_text("first")
    gated = Gated(translator)
    monkeypatch.setattr(models, "pairs_of_runs", lambda runs: [])
    new = Catalogue([served(translator, "en", "fr")])
    monkeypatch.setattr(models, "load_catalogue", lambda *_: new)
    with (
        running(None, api_key_file=str(key)) as server,
        ThreadPoolExecutor() as threads,
    ):
        server.service.ready(Catalogue([served(gated)]))
        [old] = map(weakref.ref, server.service.catalogue.models)

        def ask(target, api_key="second"):
            body = {"q": "red cat", "target": target, "api_key": api_key}
            return server.post("/translate", body)

        first = threads.submit(ask, "de", "first")
        until(lambda: gated.seen)
        key.write_text("second")
        monkeypatch.setattr("sys.stderr", Mock(write=Mock(side_effect=OSError)))
        runs = ServedRunOptions(output_dir=("run",))
        loading = threads.submit(load_anew, server.service, runs)
        until(lambda: server.service.catalogue is new)
        assert ask("fr").status_code == 200
        assert ask("de").status_code == 400
        assert ask("fr", "first").status_code == 403
        assert old() is not None
        gated.gate.set()
        assert first.result().json() == {
            "translatedText": translator.translate("red cat")
        }
        loading.result(WAIT_S)
        assert old() is None


def test_response_body_does_not_wait_for_an_acknowledgement():
    """Headers and body are written one after the other: without TCP_NODELAY the body
    comes 40 ms later.
    """
    with bind("127.0.0.1", 0) as listening:
        client = socket.create_connection(listening.getsockname())
        with client, listening.accept()[0] as accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


@pytest.mark.parametrize(
    ("limits", "raised_to", "allowed"),
    [
        ((1024, 1024), None, 768),
        ((1024, 524_288), 1256, 1000),
        ((256, resource.RLIM_INFINITY), 1256, 1000),
        ((4096, 8192), None, 1000),
        ((64, 64), None, 16),
        ((resource.RLIM_INFINITY, resource.RLIM_INFINITY), None, 1000),
    ],
)
def test_limit_of_open_files_bounds_connections(
    monkeypatch, capsys, limits, raised_to, allowed
):
    set_limits = []
    monkeypatch.setattr(resource, "getrlimit", lambda kind: limits)
    monkeypatch.setattr(resource, "setrlimit", lambda _, pair: set_limits.append(pair))
    assert allowed_connections(1000) == allowed
    assert set_limits == ([] if raised_to is None else [(raised_to, limits[1])])
    said = (
        f"there can be {allowed:,} connections, not 1,000." in capsys.readouterr().err
    )
    assert said == (allowed < 1000)
    assert allowed_connections(4) == 4
