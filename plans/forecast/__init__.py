"""What a plan would do if it were started now, without starting it: `plan run --dry-run`.

Pure: what can be found out about a call (earlier results, files) is passed in. May import the rest of `plans`.
"""
