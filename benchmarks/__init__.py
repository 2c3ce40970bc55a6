"""Benchmarks: PlanWorkflow compared with a hand-written workflow, in the same run on the same machine."""
