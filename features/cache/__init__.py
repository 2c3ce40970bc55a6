"""Results of earlier runs, taken where nothing has changed that they depend on: docs/cache.md."""

REACHES_OUT = False
COMMANDS = {"why": ("commands:why", "Show why a step waits, runs, failed or was skipped.")}
LISTED = {"why": ("Look", "show")}
OPTIONS = {
    "run": {
        "since": ("ID|last", "Take results of that run where nothing they depend on changed."),
        "no_cache": ("", "Take no results of earlier runs; keep those of this one."),
    }
}
