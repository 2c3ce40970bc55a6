"""Workers at different hosts with a workspace each: where a plan's files are.

Pure, as everything in `plans`. May import `plans.model`, `plans.model.parts` and `plans.errors` only: `plans.run` has
a Host.
"""
