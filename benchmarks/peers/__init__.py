"""Other libraries on the same data and machine, NumPy arrays in and out, each in a process of its own, in turn."""
