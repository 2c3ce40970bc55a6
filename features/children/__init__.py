"""Steps that are child workflows: plans, and what they and agents have in common. Starts, stops and resumes them.

steps: what a plan does with them. handles: what both kinds need. load_plan, load_undo: activities that read what they
start. requests: answers whether they may send LLM requests. reporter: what a child plan tells its parent. place: the
files that all of them share. Pure: orders (what a step asks for), nested and templates (what is wrong with it),
child_run and batches (the Run that it starts), reports, results and files (what comes back), accounts. What views show
of children is of the core (`plans.children`).
"""

REACHES_OUT = False
ACTIVITIES = ("load_plan", "load_undo")
COMMANDS: dict[str, tuple[str, str]] = {}
