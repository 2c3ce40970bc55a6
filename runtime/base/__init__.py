"""Files that are written whole, waiting for a condition, and where the code is. Imports nothing of `runtime`."""
