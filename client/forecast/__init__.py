"""The forecast of a plan on this machine: its files, the results of earlier runs that are kept here, and their times.

Reads only. May import `plans`, `activities`, `runtime`, and the client's root.
"""
