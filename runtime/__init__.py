"""What a process of ours runs on: settings, the connection, the embedded server, background processes, storage.

Shared by the worker and the client. May import `plans` only.
"""
