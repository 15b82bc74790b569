"""The computing kernel: numpy and pyarrow alone, because executors have nothing else."""
