"""t2t-serve answers HTTP requests with trained runs: a web page, and an API to translate, score and parse.

  t2t-serve --output_dir=RUN
  curl -s http://127.0.0.1:5000/translate -d q="The cat sleeps." -d source=en -d target=de

Several runs, one for each language pair (or parser):
  t2t-serve --output_dir=ENDE --output_dir=DEEN --output_dir=PARSER

Needs pip install 't2tlite[serve]'.
"""

from __future__ import annotations

from t2tlite.bin import flags


@flags.command(
    __doc__,
    "runs languages checkpoint_path decode_hparams engine quantization t2t_usr_dir",
    "host port max_characters max_queue timeout_s api_key cors_origins",
)
def main(args: flags.Args) -> None:
    """Serves the runs until a signal comes."""
    from t2tlite.programs.serving.batching import Limits
    from t2tlite.programs.serving.server import ServerOptions, serve
    from t2tlite.programs.serving.service import ServiceOptions

    flags.require(args, "output_dir")
    service = ServiceOptions(
        max_characters=args.max_characters,
        timeout_s=args.timeout_s,
        api_key=args.api_key,
        cors_origins=tuple(args.cors_origins or ()),
        limits=Limits(max_queue=args.max_queue),
    )
    options = ServerOptions(
        runs=tuple(args.output_dir),
        languages=tuple(args.languages or ()),
        checkpoint_path=args.checkpoint_path,
        decode_hparams=args.decode_hparams,
        engine=args.engine,
        quantization=args.quantization,
        host=args.host,
        port=args.port,
        service=service,
    )
    try:
        serve(options)
    except ImportError as error:
        raise flags.CommandError(str(error)) from error


if __name__ == "__main__":
    raise SystemExit(main())
