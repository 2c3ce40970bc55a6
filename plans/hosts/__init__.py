"""Workers at different hosts with a workspace each: where a plan's files are, and what follows when a host is lost.

Pure, as everything in `plans`. May import `plans.model`, `plans.model.parts` and `plans.errors` only: `plans.run` has
a Host.
"""
