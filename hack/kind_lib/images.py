"""The images that go into the cluster: the operator of this clone, and a shell for Jobs in tests."""

from __future__ import annotations

import os

from controlplane_lib.console import say
from controlplane_lib.paths import REPOSITORY
from kind_lib.docker import docker, has_image, run_or_stop
from kind_lib.without_registry import images as without_registry

OPERATOR = "localhost/workflow-schedules/operator:dev"
SHELL = "localhost/workflow-schedules/shell:1"  # has sh, echo and sleep
PUBLIC_SHELL = "busybox:1.37"


def build_operator(*, has_registry: bool, tag: str = OPERATOR, is_fresh: bool = False) -> str:
    """Build the operator's image from this clone.

    Args:
        is_fresh: take nothing from an earlier build.

    Raises:
        RemedyError: the build failed, with its last words.
    """
    arguments = {} if has_registry else without_registry.bases()
    say("building the operator's image")
    run_or_stop(
        "operator image",
        [
            "docker",
            "build",
            "--file",
            REPOSITORY / "operator" / "Dockerfile",
            "--tag",
            tag,
            *(["--no-cache"] if is_fresh else []),
            *(part for name, value in arguments.items() for part in ("--build-arg", f"{name}={value}")),
            REPOSITORY,
        ],
        # the classic builder needs no plugin, which such a machine's Docker may lack
        environment={} if has_registry else {"DOCKER_BUILDKIT": os.environ.get("DOCKER_BUILDKIT", "0")},
    )
    return tag


def get_shell(*, has_registry: bool) -> str:
    """Have the shell's image under its name."""
    if has_registry:
        if not has_image(PUBLIC_SHELL):
            docker("pull", "--quiet", PUBLIC_SHELL)
        docker("tag", PUBLIC_SHELL, SHELL)
    else:
        shell = without_registry.shell_image()
        for tag in (SHELL, PUBLIC_SHELL):  # the samples run here, too
            docker("tag", shell, tag)
    return SHELL
