"""Foreign workflow documents turned into plan files: GitHub Actions workflows, Serverless (Open) Workflow 1.0.

`github_actions/` and `serverless/` each make the data of a plan, with a report of what they could not carry over;
`document.py` chooses between them, `common/plan_text.py` writes the result as YAML. `commands.py` is `plan import`.
"""
