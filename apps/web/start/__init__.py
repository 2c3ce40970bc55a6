"""Starting plans on the web page: a file, a template, a pasted text, a request to the LLM; with forms for typed inputs.

`routes.routes` has the handlers. What they start goes through `client.requests`, as what commands start does.
"""
