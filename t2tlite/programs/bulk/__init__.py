"""Decoding of many sentences: files, streams, dev and test splits, and Beam pipelines.

A job (`jobs.py`) decodes or scores the lines of an input in windows, and formats them;
`outputs.py` keeps what is done. The other files build on these.
"""
