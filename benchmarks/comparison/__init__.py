"""Other libraries with durable state beside us: installed, driven, killed and judged alike.

`contender` says what each must offer; the scripts that run in their virtual environments are in `benchmarks/others`.
Imports nothing of the measurements; `benchmarks.alternatives` makes the tables.
"""
