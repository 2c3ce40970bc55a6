"""Results of earlier runs, taken where nothing has changed that they depend on: docs/cache.md."""

REACHES_OUT = False
COMMANDS = {"why": ("commands:why", "Show why a step's tool was called, or whose result it has.")}
