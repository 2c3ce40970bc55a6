"""The command line `plan`. It needs the extra `cli`; `client.__main__` says so where that is missing."""
