"""What goes wrong between the operator, the API server and the clock, on a real API server; README.md says how to run it.

A package, so that its sample is one.
"""
