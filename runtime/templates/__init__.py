"""Templates: plans saved under a name, each content as a version of its own.

`find.py` finds one by name, for the client and for activities; `store.py` keeps the versions of one folder; `folder.py`
reaches files without following links. May import `plans` and `runtime` only.
"""
