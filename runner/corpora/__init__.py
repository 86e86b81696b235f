"""Corpora from local files: captions and pictures, read once, kept as memory maps."""
