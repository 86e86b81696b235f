"""Alignment metrics: definition, source, chance level."""
