"""The image that the cluster runs: what is in it, and that the same sources give the same bytes."""

from __future__ import annotations

import json
import tarfile
from typing import TYPE_CHECKING, Any

import pytest

from support.kind_cluster import binaries, cluster, docker, images

if TYPE_CHECKING:
    from pathlib import Path

    from support.kind_cluster import KindCluster

MEGABYTES = 1_000_000


@pytest.fixture(scope="module")
def image(kind_cluster: KindCluster) -> dict[str, Any]:
    """What Docker knows of the operator's image."""
    assert kind_cluster.nodes
    return inspect(images.OPERATOR)


def inspect(tag: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(docker.docker("image", "inspect", tag))[0]
    return found


def test_the_image_is_small_and_runs_as_nobody_in_particular(image: dict[str, Any]) -> None:
    assert image["Config"]["User"] == "65532:65532"
    sizes = docker.docker("history", "--human=false", "--format", "{{.Size}}", images.OPERATOR).split()
    assert max(map(int, sizes[:5])) < 70 * MEGABYTES  # what is ours, whatever the base


def test_there_is_no_compiler_and_no_installer_in_the_image(image: dict[str, Any], tmp_path: Path) -> None:
    container = docker.docker("create", image["Id"]).strip()
    try:
        docker.docker("export", "--output", str(tmp_path / "image.tar"), container)
    finally:
        docker.docker("rm", container)
    with tarfile.open(tmp_path / "image.tar") as archive:
        names = {member.rpartition("/")[2] for member in archive.getnames() if "/bin/" in f"/{member}"}
    assert "workflow-schedules" in names
    assert not names & {"cc", "gcc", "g++", "c++", "clang", "ld", "as", "make", "pip", "pip3"}


def test_building_it_again_gives_the_same_layers(image: dict[str, Any], kind_cluster: KindCluster) -> None:
    again = f"{images.OPERATOR}-again"
    images.build_operator(has_registry=kind_cluster.has_registry, tag=again, is_fresh=True)
    try:
        assert inspect(again)["RootFS"]["Layers"] == image["RootFS"]["Layers"]
    finally:
        docker.docker("rmi", again)


def test_the_public_node_image_is_the_one_that_kind_was_made_with() -> None:
    """Where a registry is reachable, it is pulled; kind's own program names it."""
    kind = binaries.find_or_make(("kind",))["kind"]
    assert cluster.PUBLIC_NODE.encode() in kind.read_bytes()
