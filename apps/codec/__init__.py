"""The codec server: what the Temporal UI and CLI show is decrypted there, for people who may see it.

`codec_server.py` answers requests, `admission.py` decides whose; `commands.py` is `plan codec`.
Imports `client.access` only if there is a login.
"""
