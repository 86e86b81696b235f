"""Finite worlds in which the theorem of the paper can be computed, and its statements checked."""
