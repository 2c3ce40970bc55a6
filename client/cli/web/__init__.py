"""The command `plan web`. It imports the page, and with it Starlette and Jinja2, only once it serves."""
