"""Taking the results of earlier runs: the store of results, files as they are now, files re-created from the store.

May import `plans`, `runtime` and the rest of `activities`; `activities.attempt` asks it before it calls a tool.
"""
