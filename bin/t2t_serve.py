"""t2t-serve answers HTTP requests with trained runs: a web page, and an API to
translate, score and parse.

  t2t-serve --output_dir=RUN
  curl -s http://127.0.0.1:5000/translate \\
      -d q="The cat sees the dog." -d source=en -d target=de

Several runs, one for each language pair (or parser):
  t2t-serve --output_dir=ENDE --output_dir=DEEN --output_dir=PARSER

Needs pip install 't2tlite[serve]'.
"""

from __future__ import annotations

import importlib

from t2tlite.bin import flags
from t2tlite.programs.serving.options import ServedRunOptions, ServerOptions

# packages of the extra
EXTRA = (
    "fastapi",
    "httptools",
    "prometheus_client",
    "py3langid",
    "python_multipart",
    "sentencex",
    "uvicorn",
)


@flags.command(
    __doc__,
    "runs languages checkpoint_path decode_hparams engine quantization t2t_usr_dir",
    ServerOptions,
)
def main(args: flags.Args) -> None:
    """Serves the runs until a signal comes."""
    flags.require(args, "output_dir")
    options = flags.filled(ServerOptions, args)
    require_extra()
    from t2tlite.programs.serving.server import serve

    runs = tuple(args.output_dir or ())
    serve(flags.filled(ServedRunOptions, args, runs=runs), options)


def require_extra() -> None:
    """Raises CommandError, which says what to install, if a package of the extra is
    missing.
    """
    try:
        for package in EXTRA:
            importlib.import_module(package)
    except ImportError as error:
        raise flags.CommandError(
            f"t2t-serve needs the packages {', '.join(EXTRA)} ({error}): pip install"
            " 't2tlite[serve]'."
        ) from error


if __name__ == "__main__":
    raise SystemExit(main())
