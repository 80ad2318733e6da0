"""Hparam sets; importing this package registers them."""

from t2tlite.hparams import parsing, table3, tensor2tensor, transformer  # noqa: F401
