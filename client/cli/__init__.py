"""The command line `plan`."""

from client.cli.app import main

__all__ = ["main"]
