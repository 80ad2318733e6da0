"""Run directories: what they hold, loading them, making them by training."""
