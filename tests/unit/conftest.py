"""How thoroughly properties are searched: ``--hypothesis-profile deep`` looks 20 times further than the default."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("deep", max_examples=2000, deadline=None)
