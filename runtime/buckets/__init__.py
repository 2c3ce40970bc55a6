"""Buckets for data too large for history, beside S3, whose driver is the SDK's (`runtime.storage`): Google's.

May import `plans`, `runtime.storage` and `runtime.keys`; loads a vendor's library only when its bucket is used.
"""
