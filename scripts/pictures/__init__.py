"""Takes the pictures in the documents from real runs: a terminal (tmux) and the web page (Chromium by playwright).

`make pictures` writes docs/pictures. Imports nothing of ours but the command line, which it starts as a user would.
"""
