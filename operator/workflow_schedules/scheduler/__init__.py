"""When to look at which schedule, and who may: clock, wake-ups, loop, leadership, projections.

Rules live in core, requests in cluster; nothing here knows a field of the API.
"""
