"""Reports from GPUs: what a device gets right, how fast it is, and what its plans predict. See ``__main__``."""
