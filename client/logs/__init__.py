"""The output of commands, attempt by attempt: what is recorded of it, what is written at this moment, and the texts.

Needs the Temporal server and the storage, not the machine of the worker.
"""
