"""What is started: a plan file, a template or a text, checked, with its inputs and a workspace that is allowed.

May import `client`, `runtime`, `activities` and `plans`; the command line and the web page both start plans with it.
"""
