"""Tasks; importing this package registers ours."""

from t2tlite.tasks import parsing, pronunciation, task  # noqa: F401
