"""Worlds: scenes and their observations."""
