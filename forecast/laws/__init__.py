"""Laws: maths and source, nothing else."""
