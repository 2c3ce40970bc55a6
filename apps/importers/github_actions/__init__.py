"""GitHub Actions workflows: `workflow.py` makes the plan, of jobs; `steps.py` of their steps.

`context.py` knows what contexts such as `needs.build` mean, `conditions.py` reads expressions,
`matrix.py` combinations.
"""
