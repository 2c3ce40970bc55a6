"""Versions of the code that workers run: what names one, how a worker joins it, and which the server gives plans to.

Built on Temporal's Worker Deployments. `layout.py` is the version of the state directory, with its migrations. Imports
nothing that needs the settings; `runtime.joining` does.
"""
