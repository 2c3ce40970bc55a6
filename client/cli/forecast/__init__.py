"""`--dry-run`: what a plan would do, shown instead of starting it.

May import what the command line may.
"""
