"""The client side: the API with one typed function per verb (`client.runs`), the command line, the review screen.

May import `plans`, `runtime`, `activities` and `workflows`; no other package may import it.
"""
