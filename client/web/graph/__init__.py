"""The graph and the time line of a plan, for the page: nodes, edges, groups that fold, bars.

Works on views and plan files and asks the server for nothing. May import `plans`, and of `client` only `client.web`.
"""
