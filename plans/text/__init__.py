"""How texts and spans of time are written, for people: safe to show, in words, short.

Imports nothing of ours.
"""
