"""Tasks; importing this package registers ours."""

from t2tlite.tasks import parsing, task  # noqa: F401
