"""The web page: plans, decisions and drafts in a browser, as a thin layer over `client.runs`.

`app.application` builds it, `serve.serve` runs it. Features and other apps add pages at the seam
`client.page.pages`.
"""
