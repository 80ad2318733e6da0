"""Metrics; importing this package registers ours."""

from t2tlite.metrics import corpus_metrics, sequence_metrics  # noqa: F401
