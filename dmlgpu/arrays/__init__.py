"""The NumPy face: arrays on a device, and the functions that take them or NumPy's."""
