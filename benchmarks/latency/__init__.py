"""From submit to running code, and tasks per second: Oarlock's whole loop beside Slurm on the same machine."""
