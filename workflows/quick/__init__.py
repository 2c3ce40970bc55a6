"""Quick calls in the workflow: local activities, until the window of a workflow task is full; older runs' windows.

May import `plans` and `workflows.policies`.
"""
