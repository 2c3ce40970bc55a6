"""What plans are made of and run by, on the web page: templates, tools, agents and their history.

`routes.routes` has the handlers; each does what the command of that name does.
"""
