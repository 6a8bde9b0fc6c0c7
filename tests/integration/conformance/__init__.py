"""What other schedulers' own tests check, restated for this API on a real API server; the table is in README.md.

A package, so that its operator and its one wave of schedules last as long as it does (pytest's scope of that name).
"""
