"""Decoding of many sentences: files, streams, dev and test splits, and Beam pipelines.

A job (`jobs.py`) decodes or scores the lines of an input in windows, and formats what is written (`line_format.py`);
`outputs.py` keeps it. `decode_file.py`, `decode_split.py` and `decode_pipeline.py` are functions over that.
"""
