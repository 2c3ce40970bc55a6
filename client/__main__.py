"""`python -m client` is `plan`."""

from client.cli import main

main()
