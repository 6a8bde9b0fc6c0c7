"""Every rule of the contract as pure functions: snapshot and time in, plan out.

No clock, no asyncio, no logging, no randomness and no Kubernetes client may live here.
"""
