"""What a client does with plans: a typed async function per verb, for the command line, the page and features.

`client.runs` is these and the functions of features, for scripts; nothing else in `client`, and no feature, imports it.
"""
