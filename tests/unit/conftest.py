"""How thoroughly properties are searched: ``--hypothesis-profile deep`` looks 20 times further than the default.

No example has a deadline: beside other tests on a busy machine it would tell of the machine, not of the code.
"""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("deep", max_examples=2000, deadline=None)
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")
