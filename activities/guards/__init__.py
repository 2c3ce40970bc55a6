"""What the workflows that guard plans ask of the server: to pass on a request, and whether another workflow has ended.
Uses the worker's own client (`activity.client`), and no other package of `activities`.
"""
