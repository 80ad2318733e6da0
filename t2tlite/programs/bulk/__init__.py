"""Decoding of many sentences: files, dev and test splits, streams, and Beam pipelines.

`file_job.py` decodes or scores any number of lines in windows (`windows.py`), and formats the lines that are written
(`line_format.py`); `outputs.py` keeps these. `decode_file.py`, `decode_stream.py`, `decode_split.py` and
`decode_pipeline.py` have one function each over that.
"""
