"""From a commitment to outcomes: studies, jobs, training."""
