"""The only place that talks to the API server: client, errors, watches, the cache, and carrying out one step of a plan.

No rules of the contract live here.
"""
