"""A node image for kind: systemd, containerd, the kubelet, and the control plane's images in containerd's store."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tarfile
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from controlplane_lib import binaries, toolchain
from controlplane_lib.console import RemedyError, say
from controlplane_lib.paths import TOOLS, cache_root, module_version, tools_key
from kind_lib.docker import docker, has_image, run_or_stop
from kind_lib.without_registry.debian import file_system, made_once
from kind_lib.without_registry.images import import_tar, shell_base

if TYPE_CHECKING:
    from collections.abc import Iterator

_PACKAGES = [
    "bash",
    "ca-certificates",
    "conntrack",
    "containernetworking-plugins",
    "e2fsprogs",
    "ethtool",
    "iproute2",
    "iptables",
    "jq",
    "kmod",
    "libseccomp2",
    "mount",
    "nftables",
    "procps",
    "runc",
    "systemd",
    "util-linux",
]
_PLUGINS = ("host-local", "loopback", "portmap", "ptp")
_UNITS = ("containerd.service", "kubelet.service", "undo-mount-hacks.service")
_UNWANTED = (
    "lib/systemd/system/multi-user.target.wants/*",
    "etc/systemd/system/*.wants/*",
    "lib/systemd/system/local-fs.target.wants/*",
    "lib/systemd/system/sockets.target.wants/*udev*",
    "lib/systemd/system/sockets.target.wants/*initctl*",
    "lib/systemd/system/basic.target.wants/*",
    "lib/systemd/system/sysinit.target.wants/systemd-tmpfiles-setup.service",
)
_STORAGE = {  # kind wants a manifest here; the controller manager provides such volumes itself
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "standard", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
    "provisioner": "kubernetes.io/host-path",
}
_FILL_STORE = """
mount --bind /dev "$0/dev"
mount -t proc proc "$0/proc"
exec chroot "$0" sh -euc '
containerd >/tmp/containerd.log 2>&1 &
for _ in $(seq 150); do ctr version >/dev/null 2>&1 && break; sleep 0.2; done
ctr -n k8s.io images import --all-platforms --no-unpack --digests /images.tar || { cat /tmp/containerd.log; exit 1; }
kill $! && wait $! || true'
"""


def node_image() -> str:
    """The tag of the node image, which is in Docker's store afterwards.

    Raises:
        RemedyError: a part of it can't be made.
    """
    recipe = f"{tools_key()} {Path(__file__).read_text()}"
    path = made_once("node", recipe, _make)
    tag = f"localhost/workflow-schedules/node:{path.stem.removeprefix('node-')}"
    if not has_image(tag):
        say("loading the node image into Docker")
        import_tar(path, tag, "ENV container=docker", 'ENTRYPOINT ["/usr/local/bin/entrypoint", "/sbin/init"]')
    return tag


def _make(fresh: Path) -> None:
    if os.geteuid() != 0:
        raise RemedyError("putting a node image together needs root", remedy="run the same command as root")
    names = ("etcd", "kubectl", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
    programs = binaries.find_or_make((*names, *(program.name for program in binaries.NODE_PROGRAMS)))
    base = file_system("node-base", _PACKAGES, is_whole=True)
    say("putting the node image together")
    with _scratch() as scratch:
        images, root = scratch / "images.tar", scratch / "root"
        pause = _save_images(programs, images, scratch)
        root.mkdir()
        run_or_stop("node unpacking", ["tar", "-C", root, "-xf", base, "--exclude=./dev/*"])
        _copy_kinds_files(root)
        _install(programs, root, pause=pause)
        _fill_store(root, images)
        run_or_stop("node packing", ["tar", "-C", root, "-cf", fresh, "."])


@contextmanager
def _scratch() -> Iterator[Path]:
    folder = cache_root() / "without-registry"
    with tempfile.TemporaryDirectory(prefix=".node-", dir=folder) as name:
        yield Path(name)


def _save_images(programs: dict[str, Path], into: Path, scratch: Path) -> str:
    """Write what kubeadm will ask for into one archive; returns the name of the pause image."""
    listed = subprocess.run(
        [programs["kubeadm"], "config", "images", "list", f"--kubernetes-version={_version()}"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    tags = {tag.rpartition("/")[2].partition(":")[0]: tag for tag in listed}
    del tags["coredns"]  # left out: nothing here resolves names
    bases = {"kube-proxy": file_system("iptables", ["iptables"]), "pause": shell_base()}
    for name, tag in tags.items():
        layer = scratch / "layer.tar"
        if name in bases:
            shutil.copyfile(bases[name], layer)
        with tarfile.open(layer, "a" if name in bases else "w") as archive:
            if name in programs:
                archive.add(programs[name], f"usr/local/bin/{name}")
            for link in (
                "iptables",
                "iptables-save",
                "iptables-restore",
                "ip6tables",
                "ip6tables-save",
                "ip6tables-restore",
            ):
                if name == "kube-proxy":
                    _add_link(archive, f"usr/sbin/{link}", "xtables-nft-multi")
        entry = '["/bin/busybox", "sleep", "infinity"]' if name == "pause" else "[]"
        import_tar(layer, tag, "ENV PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", f"ENTRYPOINT {entry}")
        layer.unlink()
    docker("save", "-o", str(into), *tags.values())
    docker("rmi", *tags.values())
    return tags["pause"]


def _add_link(archive: tarfile.TarFile, name: str, target: str) -> None:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = tarfile.SYMTYPE, target
    archive.addfile(member)


def _copy_kinds_files(root: Path) -> None:
    """The files of kind's own base image, from its Go module."""
    module = subprocess.run(
        [toolchain.go(), "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/kind"],
        cwd=TOOLS,
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"GOFLAGS": "-mod=mod", "GOWORK": "off"},
    ).stdout.strip()
    files = Path(module) / "images" / "base" / "files"
    for source in sorted(path for path in files.rglob("*") if path.is_file()):
        target = root / source.relative_to(files)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
        target.chmod(0o755 if "bin" in target.parent.name else 0o644)


def _install(programs: dict[str, Path], root: Path, *, pause: str) -> None:
    for folder, names in {
        "usr/local/bin": ("containerd", "containerd-shim-runc-v2", "ctr"),
        "usr/bin": ("kubeadm", "kubectl", "kubelet"),
    }.items():
        for name in names:
            shutil.copy2(programs[name], root / folder / name)
    for folder in ("opt/cni/bin", "etc/cni/net.d", "etc/kubernetes/manifests", "kind/manifests"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    for plugin in _PLUGINS:
        shutil.copy2(root / "usr/lib/cni" / plugin, root / "opt/cni/bin" / plugin)
    (root / "kind/version").write_text(_version())
    (root / "kind/manifests/default-storage.yaml").write_text(json.dumps(_STORAGE))
    (root / "kind/manifests/default-cni.yaml").write_text("# hack/kind writes each node's network configuration\n")
    _set_up_systemd(root)
    _set_up_containerd(programs["ctr"], root, pause=pause)


def _set_up_systemd(root: Path) -> None:
    for pattern in _UNWANTED:
        for path in root.glob(pattern):
            path.unlink()
    with (root / "etc/systemd/journald.conf").open("a") as settings:
        settings.write("ReadKMsg=no\n")
    (root / "sbin/init").unlink(missing_ok=True)
    (root / "sbin/init").symlink_to("/usr/lib/systemd/systemd")
    _in_root(root, "systemctl", "enable", *_UNITS)
    _in_root(root, "systemctl", "mask", "systemd-binfmt.service")


def _set_up_containerd(ctr: Path, root: Path, *, pause: str) -> None:
    settings = root / "etc/containerd/config.toml"
    text = settings.read_text()
    # A process may lower its oom_score_adj only with CAP_SYS_RESOURCE, which such machines may withhold.
    for old, new in {
        'sandbox_image = "registry.k8s.io/pause:3.10"': f'sandbox_image = "{pause}"',
        "restrict_oom_score_adj = false": "restrict_oom_score_adj = true",
    }.items():
        assert old in text, f"kind's containerd settings no longer say {old}"
        text = text.replace(old, new)
    settings.write_text(text)
    spec = json.loads(subprocess.run([ctr, "oci", "spec"], capture_output=True, check=True).stdout)
    spec["process"].pop("rlimits", None)
    spec.setdefault("hooks", {})["createContainer"] = [{"path": "/kind/bin/mount-product-files.sh"}]
    (root / "etc/containerd/cri-base.json").write_text(json.dumps(spec))


def _fill_store(root: Path, images: Path) -> None:
    images.rename(root / "images.tar")
    run_or_stop(
        "node images", ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-euc", _FILL_STORE, root]
    )
    (root / "images.tar").unlink()
    for folder in ("run", "tmp", "var/cache", "var/log", "var/lib/apt"):
        for path in (root / folder).iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()


def _in_root(root: Path, *command: str) -> None:
    run_or_stop(f"node {command[0]} {command[1]}", ["chroot", root, *command])


def _version() -> str:
    return module_version("k8s.io/kubernetes")
