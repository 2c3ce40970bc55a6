"""Plans in somebody else's Temporal worker: a plugin that adds our workflows and tools, and starting plans as children.

May import everything but worker.py, and no library of the command line.
"""
