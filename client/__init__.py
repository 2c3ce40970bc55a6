"""The user's side: finding a server, keeping a worker, one typed function per verb, and the command line."""
