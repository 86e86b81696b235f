"""Readers of foreign formats, one file each."""
