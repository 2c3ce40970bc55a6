"""The client side: the API with one typed function per verb (`client.runs`), and the command line.

This folder itself has what all of them build on, and imports none of its own folders; `client.runs` is the top.
May import `plans`, `runtime`, `activities` and `workflows`; no other package may import it.
"""
