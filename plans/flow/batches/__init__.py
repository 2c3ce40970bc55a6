"""Loops whose items run in child plans (`forEach` with `mode: plans`): how a list is split, and what became of it.

May import what `plans.flow` may. The Run of a batch is made in `features.children.batches`.
"""
