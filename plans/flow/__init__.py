"""Steps that a plan does not list: those that exist only at run time, each with an id of its own (DESIGN 2.8).

Which there are, what they call, and which values they may use. Pure; imports `plans.model`, `plans.run` and the
schedule. Nothing here sets a status: `plans.execution.schedule` does.
"""
