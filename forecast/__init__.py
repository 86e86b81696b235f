"""From runs to a forecast."""
