"""Pure values and decisions: plans, their validation, the scheduling of steps, and the views of a run.

Nothing in this package reads a clock, uses randomness, touches files, the network or the environment, or imports
Temporal: deterministic workflow code uses it, where any of that would break replay.

The folders are layers, each of which imports those before it: `text`, `model`, the modules of this folder,
`expressions`, `files`, `definition` with its `checks`, `flow`, `run`, `editing`, `execution`, `views`. `llm` and
others stand beside.
"""
