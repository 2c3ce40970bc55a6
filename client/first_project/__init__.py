"""`plan init`: what a new project with plans consists of, and how it gets there. `files/` holds the files as they are
written, `.txt` aside. Imports plans, runtime and client/cli/check's schema.
"""
