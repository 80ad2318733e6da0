"""Decoding of many sentences: files, streams, dev and test splits, and Beam pipelines.

An input is cut into windows, each decoded or scored by a job (`jobs.py`). The file
OUT.part (`part.py`) keeps their outputs, so that an interrupted command resumes. The
other files build on these.
"""
