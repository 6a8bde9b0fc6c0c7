"""Deletion on a real control plane: what goes, what stays, and that nothing waits for an operator."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from support.cluster_stories import a_manifest, manifests, occurrences, until

if TYPE_CHECKING:
    from collections.abc import Callable

    Kubectl = Callable[..., Any]


def apply(kubectl: Kubectl, namespace: str, name: str, **spec: object) -> None:
    kubectl("apply", "-n", namespace, "-f", "-", input=manifests(a_manifest(name, **spec)))


def first_records(kubectl: Kubectl, namespace: str) -> list[dict[str, Any]]:
    return until(lambda: occurrences(kubectl, namespace), lambda found: len(found) >= 1, seconds=30)


@pytest.mark.usefixtures("operator")
@pytest.mark.parametrize(("policy", "is_kept"), [("Retain", True), ("Delete", False)])
def test_records_stay_or_go_with_their_schedule(kubectl: Kubectl, namespace: str, policy: str, is_kept: bool) -> None:
    """R20: the garbage collector takes what the schedule owns, and only that."""
    apply(kubectl, namespace, "yearly", schedule="0 0 1 1 *", deletionPolicy=policy)
    before = first_records(kubectl, namespace)
    kubectl("delete", "wfs", "yearly", "-n", namespace, "--timeout=20s")
    left = until(lambda: occurrences(kubectl, namespace), lambda found: bool(found) is is_kept, seconds=30)
    assert len(left) == (len(before) if is_kept else 0)


@pytest.mark.usefixtures("operator")
def test_a_schedule_deleted_at_once_is_gone_at_once(kubectl: Kubectl, namespace: str) -> None:
    """K-099: no finalizer is ever put on it."""
    apply(kubectl, namespace, "brief", schedule="* * * * *")
    kubectl("delete", "wfs", "brief", "-n", namespace, "--timeout=10s")
    assert json.loads(kubectl("get", "wfs", "-n", namespace, "-o", "json").stdout)["items"] == []


def test_a_namespace_goes_away_without_an_operator(kubectl: Kubectl, namespace: str) -> None:
    """K-097: with ten schedules in it, and nobody there who could clear a finalizer."""
    for number in range(10):
        apply(kubectl, namespace, f"s{number}", schedule="* * * * *")
    kubectl("delete", "namespace", namespace, "--timeout=60s")
