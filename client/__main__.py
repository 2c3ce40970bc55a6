"""`python -m plansurvive.client` is `plan`."""

from plansurvive.client.cli import main

main()
