"""What happens to a plan, as it happens, for all who look at it: one watcher per plan, however many look.

A watcher only asks: it adds no event to a plan's history. `hub` finds it, `watcher` reads the plan, of a big one only
what may have changed (`merging`), `stream` tells it to a browser.
"""
