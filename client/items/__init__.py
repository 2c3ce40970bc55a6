"""The steps inside blocks and loops, for a client: reading them in pages, deciding about many of them at once."""
