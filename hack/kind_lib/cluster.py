"""A kind cluster: made once, found again, and taken away with all that was changed for it.

Each clone has one of its own. Its kubeconfig is a file in the cache; `~/.kube/config` is never touched.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from controlplane_lib import binaries, processes
from controlplane_lib.console import RemedyError, say, tail
from controlplane_lib.lock import hold
from controlplane_lib.paths import cache_root, default_name
from kind_lib import daemon, images, network
from kind_lib.docker import has_image, run_long, run_or_stop
from kind_lib.without_registry.node import node_image

__all__ = ["KindCluster", "default_name", "down", "find", "install", "load", "names", "prepare", "up"]

INSTALL = Path(__file__).with_name("install")
NAMESPACE = "workflow-schedules-system"
# what kind v0.33.0 takes by default
PUBLIC_NODE = "kindest/node:v1.37.0@sha256:a1ed56cfb0e7b93589bdf97c8cd566405a265939e3620fc4f5de89adff580ae5"
_READY_SECONDS = 180


@dataclass(frozen=True, slots=False, kw_only=True)
class KindCluster:
    """One that came up.

    Attributes:
        has_registry: whether its node image was pulled, and others can be.
        nodes: how many, the control plane's included.
    """

    name: str
    has_registry: bool
    nodes: int

    @property
    def kubeconfig(self) -> Path:
        """A kubeconfig file of the administrator."""
        return _home(self.name) / "kubeconfig"

    @cached_property
    def kubectl_path(self) -> Path:
        return binaries.find_or_make(("kubectl",))["kubectl"]

    def kubectl(
        self,
        *arguments: str,
        input: str | None = None,  # noqa: A002 - as subprocess.run calls it
        check: bool = True,
    ) -> subprocess.CompletedProcess[str]:
        """Run kubectl against it.

        Raises:
            AssertionError: it failed and `check` is true; with what it said.
        """
        done = subprocess.run(
            [str(self.kubectl_path), "--kubeconfig", str(self.kubeconfig), *arguments],
            input=input or "",
            capture_output=True,
            text=True,
            check=False,
            env=os.environ | {"KUBECACHEDIR": str(_home(self.name) / "kubectl-cache")},
        )
        if check and done.returncode:
            said = f"{done.stdout}{done.stderr}"
            raise AssertionError(f"kubectl {' '.join(arguments)} ended with {done.returncode}:\n{said}")
        return done

    def answers(self) -> bool:
        asked = self.kubectl("--request-timeout=5s", "get", "--raw", "/readyz", check=False)
        return asked.returncode == 0


def up(name: str, *, workers: int | None = None, may_start_docker: bool = False) -> KindCluster:
    """Have the cluster of that name run with its nodes ready.

    Args:
        workers: nodes beside the control plane's; None takes one that runs as it is.

    Raises:
        RemedyError: it can't; says what to do.
    """
    started = time.monotonic()
    with daemon.in_use(), hold(_lock(name), purpose=f"it is bringing {name} up or down"):
        kind = str(binaries.find_or_make(("kind", "kubectl"))["kind"])
        daemon.require(may_start=may_start_docker)
        found = find(name)
        if found and name in _existing(kind) and found.answers():
            check_nodes(found, workers)
            say(f"{name}: is up")
        else:
            _delete(kind, name)
            found = _create(kind, name, workers=workers or 0)
        _finish(found)
    say(f"{name}: ready in {time.monotonic() - started:.0f} s")
    return found


def check_nodes(found: KindCluster, workers: int | None) -> None:
    """Refuse a cluster that runs with another number of workers than was asked for: it may be in use."""
    if workers is not None and found.nodes != workers + 1:
        raise RemedyError(
            f"{found.name} is up with {found.nodes - 1} workers, not {workers}",
            remedy=f"use it as it is, or hack/kind down --name {found.name} first",
        )


def down(name: str) -> bool:
    """Delete the cluster; after the last one, put the machine back. False when there was nothing."""
    with (
        daemon.in_use(),
        hold(_lock(name), purpose=f"it is bringing {name} up or down"),
        processes.uninterrupted(),
    ):
        was = _home(name).exists()
        if daemon.answers():
            kind = str(binaries.find_or_make(("kind",))["kind"])
            was = was or name in _existing(kind)
            _delete(kind, name)
        elif was:
            say(
                "Docker's daemon does not answer: containers of the cluster, if any are left, go with its next up or down"
            )
        shutil.rmtree(_home(name), ignore_errors=True)
    return was


def find(name: str) -> KindCluster | None:
    """The cluster of that name if it came up; it may have died since."""
    try:
        return KindCluster(**json.loads((_home(name) / "state.json").read_text()))
    except (FileNotFoundError, ValueError, TypeError):
        return None


def names() -> list[str]:
    folder = cache_root() / "kind" / "clusters"
    return sorted(entry.name for entry in folder.iterdir() if entry.is_dir()) if folder.exists() else []


def prepare(*, may_start_docker: bool) -> None:
    """Make all that takes minutes, so that `up` and `load` take seconds; leaves Docker as it was.

    Raises:
        RemedyError: something can't be made.
    """
    binaries.find_or_make(("kind", "kubectl"))
    with daemon.in_use():
        daemon.require(may_start=may_start_docker)
        _, has_registry = _node_image()
        images.get_shell(has_registry=has_registry)
        images.build_operator(has_registry=has_registry)


def load(cluster: KindCluster) -> None:
    """Build the images of this clone and put them into every node.

    Raises:
        RemedyError: one does not build.
    """
    kind = binaries.find_or_make(("kind",))["kind"]
    # one clone at a time: they share Docker, and the names of the images in it
    with hold(cache_root() / "kind" / "images.lock", purpose="it is building and loading images"):
        tags = [
            images.get_shell(has_registry=cluster.has_registry),
            images.build_operator(has_registry=cluster.has_registry),
            *([] if cluster.has_registry else [images.PUBLIC_SHELL]),  # which the samples name
        ]
        run_or_stop(
            f"loading images into {cluster.name}", [kind, "load", "docker-image", "--name", cluster.name, *tags]
        )
    say("the operator's image and the shell's are in every node")


def install(cluster: KindCluster) -> None:
    """`kubectl apply -k` of manifests/ with the image of this clone, and wait until the operator is ready.

    Raises:
        RemedyError: it does not get ready.
    """
    deployment = ("deployment/workflow-schedules", "-n", NAMESPACE)
    steps = [("apply", "-k", str(INSTALL)), ("rollout", "status", *deployment, "--timeout=180s")]
    if cluster.kubectl("get", *deployment, check=False).returncode == 0:
        steps.insert(1, ("rollout", "restart", *deployment))  # the image's name stays the same when it is built again
    for arguments in steps:
        done = cluster.kubectl(*arguments, check=False)
        if done.returncode:
            raise RemedyError(
                f"kubectl {arguments[0]} failed:\n{tail(done.stderr)}",
                remedy=f'eval "$(hack/kind env)" && kubectl describe pods -n {NAMESPACE}',
            )


def _node_image() -> tuple[str, bool]:
    """The node image, and whether it was pulled."""
    if has_image(PUBLIC_NODE):
        return PUBLIC_NODE, True
    say("trying to pull kind's node image")
    if run_long("pulling the node image", ["docker", "pull", PUBLIC_NODE]):
        return PUBLIC_NODE, True
    say("no container registry is reachable from here: using a node image put together on this machine")
    return node_image(), False


def _create(kind: str, name: str, *, workers: int) -> KindCluster:
    daemon.note()
    image, has_registry = _node_image()
    home = _home(name)
    home.mkdir(parents=True, exist_ok=True)
    (home / "config.json").write_text(json.dumps(configuration(workers=workers, has_registry=has_registry)))
    say(f"{name}: making a cluster of {workers + 1} node{'s' if workers else ''}")
    command = [kind, "create", "cluster", "--name", name, "--image", image, "--config", home / "config.json"]
    try:
        run_or_stop(f"making {name}", [*command, "--kubeconfig", home / "kubeconfig"])
    except BaseException:
        with processes.uninterrupted():
            _delete(kind, name)
            shutil.rmtree(home, ignore_errors=True)
        raise
    cluster = KindCluster(name=name, has_registry=has_registry, nodes=workers + 1)
    (home / "state.json").write_text(json.dumps(asdict(cluster)))
    return cluster


def _finish(cluster: KindCluster) -> None:
    if not cluster.has_registry:
        network.connect(lambda *arguments: cluster.kubectl(*arguments).stdout, nodes=cluster.nodes)
    for arguments in (
        ("wait", "--for=condition=Ready", "node", "--all", f"--timeout={_READY_SECONDS}s"),
        ("wait", "--for=create", "--timeout=60s", "serviceaccount/default"),
    ):
        done = cluster.kubectl(*arguments, check=False)
        if done.returncode:
            raise RemedyError(
                f"{cluster.name} does not get ready:\n{tail(done.stdout + done.stderr)}",
                remedy=f"docker logs {cluster.name}-control-plane; then hack/kind down, hack/kind up",
            )


def configuration(*, workers: int, has_registry: bool) -> dict[str, Any]:
    """What kind is told to make."""
    kubelet = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "failCgroupV1": False,  # many machines still have nothing newer
    }
    untainted = {"kind": "InitConfiguration", "nodeRegistration": {"taints": []}}  # Pods may run on every node
    nameless = {"kind": "ClusterConfiguration", "dns": {"disabled": True}}
    # kind itself frees a node that is alone of its taint, and fails where there is none
    patches = [kubelet, *([untainted] if workers else []), *([] if has_registry else [nameless])]
    return {
        "kind": "Cluster",
        "apiVersion": "kind.x-k8s.io/v1alpha4",
        "networking": {
            "ipFamily": "ipv4",
            "podSubnet": "10.244.0.0/16",
            "kubeProxyMode": "iptables",
            "disableDefaultCNI": not has_registry,
        },
        "nodes": [{"role": "control-plane"}, *({"role": "worker"} for _ in range(workers))],
        "kubeadmConfigPatches": [json.dumps(patch) for patch in patches],
    }


def _existing(kind: str) -> list[str]:
    asked = subprocess.run([kind, "get", "clusters", "--quiet"], capture_output=True, text=True, check=False)
    return asked.stdout.split()


def _delete(kind: str, name: str) -> None:
    if name in _existing(kind):
        say(f"{name}: deleting the cluster")
        run_or_stop(
            f"deleting {name}", [kind, "delete", "cluster", "--name", name, "--kubeconfig", _home(name) / "kubeconfig"]
        )


def _home(name: str) -> Path:
    return cache_root() / "kind" / "clusters" / name


def _lock(name: str) -> Path:
    return cache_root() / "kind" / f"{name}.lock"
