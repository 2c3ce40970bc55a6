"""Forms made from JSON schemas: which kind of field a schema asks for, and values as text and back.

One tree (`tree.Node`), drawn by the review screen, by drafts, questions on a terminal
(`question`), the web page (`client.forms.schema_form`) and agents (`apps.mcp.decisions.forms`).
`inputs` is the form of a plan's inputs in a browser.
"""
