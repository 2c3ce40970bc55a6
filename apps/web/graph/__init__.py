"""The graph and the time line of a plan, for the page: nodes, edges, groups that fold, bars.

All but `routes` work on views and plan files, and ask the server for nothing. May import `plans`, `client.runs` and
`apps.web`.
"""
