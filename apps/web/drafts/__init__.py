"""Review of a plan on the web page: its steps, what differs between versions, edits, regeneration, the next run, undo.

`routes.routes` has the handlers. May import `apps.web`'s service, rendering, forms and access, and what commands use.
"""
