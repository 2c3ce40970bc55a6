"""Serverless Workflow 1.0, also called Open Workflow: `workflow.py` makes the plan, `flow.py` follows the tasks.

`tasks.py` has the tasks that become one step, `blocks.py` those with tasks inside, `jq.py` expressions, and `state.py`
what the data of the workflow is at each task.
"""
