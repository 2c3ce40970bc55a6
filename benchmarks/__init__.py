"""How fast and how big: PlanWorkflow beside a hand-written workflow, in the same run on the same machine."""
