"""What the operator relies on in an API server, as one table that the fake and the real one must both pass."""

from __future__ import annotations

from support import api_contract_fence, api_contract_lists, api_contract_objects
from support.api_world import CONTRACT, LEASE_NAME, LEASE_NAMESPACE, Check, World, a_name

__all__ = ["CONTRACT", "LEASE_NAME", "LEASE_NAMESPACE", "PARTS", "Check", "World", "a_name"]

PARTS = (api_contract_objects, api_contract_lists, api_contract_fence)  # each enters its checks into CONTRACT
