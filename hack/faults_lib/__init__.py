"""Faults between the operator and a real API server: a proxy that numbers requests and misbehaves as it is told.

Needs the virtual environment (aiohttp). `proxy.FaultProxy` stands in the way, `faults` names what may go wrong with one
request, `streams` what may go wrong with a watch; `seen` is what they know of a request.
"""
