"""`python -m plansurvive` is `plan`."""

from plansurvive.client.cli import main

main()
