"""The web page: plans, decisions and drafts in a browser, as a thin layer over `client.runs`.

`app.application` builds it, `serve.serve` runs it. Starlette and Jinja2 are imported here and nowhere else; may import
`client.runs` and what it is made of, but not the command line.
"""
