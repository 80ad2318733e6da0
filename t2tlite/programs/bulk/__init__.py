"""Decoding of many sentences: files, dev and test splits, streams, and Beam pipelines."""
