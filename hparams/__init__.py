"""Hparam sets; importing this package registers them."""

from t2tlite.hparams import transformer  # noqa: F401
