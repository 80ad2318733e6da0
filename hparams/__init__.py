"""Hparam sets; importing this package registers them."""

from t2tlite.hparams import parsing, tensor2tensor, transformer  # noqa: F401
