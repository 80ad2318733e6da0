"""t2t-serve answers HTTP requests with trained runs: a web page, and an API to
translate and parse.

  t2t-serve --output_dir=RUN
  curl -s http://127.0.0.1:5000/translate \\
      -d q="The cat sees the dog." -d source=en -d target=de

Several runs, one for each language pair (or parser):
  t2t-serve --output_dir=ENDE --output_dir=DEEN --output_dir=PARSER

SIGHUP loads the runs, the glossary and the file of the API key anew, while requests go
on; SIGTERM or Ctrl-C answers what was accepted, and ends. Needs pip install
't2tlite[serve]'.
"""

import dataclasses

from t2tlite.bin import groups
from t2tlite.bin.command import command
from t2tlite.bin.flags import require
from t2tlite.programs.serving.options import ServedRunOptions, ServerOptions


@dataclasses.dataclass(frozen=True, kw_only=True)
class ServeFlags(
    ServerOptions, groups.PackageFlags, groups.EngineFlags, ServedRunOptions
):
    """What is served, and how."""


@command
def main(flags: ServeFlags) -> None:
    """Serves the runs until a signal comes."""
    # empty ones would be all of this machine, and no key
    require(host=flags.host)
    if flags.api_key is not None:
        require(api_key=flags.api_key)
    try:
        from t2tlite.programs.serving.server import serve
    except ImportError as error:
        raise ValueError(
            f"t2t-serve lacks a package ({error}): pip install 't2tlite[serve]'."
        ) from error
    serve(runs=flags, options=flags)


if __name__ == "__main__":
    raise SystemExit(main())
