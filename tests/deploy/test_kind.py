"""What hack/kind and the operator's image are made of; that a cluster works is for e2e to show."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from support.kind_cluster import INSTALL, REPOSITORY, cluster, daemon, firewall, images, network, runtime

DOCKERFILE = (REPOSITORY / "operator" / "Dockerfile").read_text()


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of this test's own, and no Docker."""
    monkeypatch.setenv("WORKFLOW_SCHEDULES_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(daemon, "answers", lambda: False)
    return tmp_path / "cache"


def test_the_image_runs_as_nobody_in_particular_and_is_built_from_hashed_pins() -> None:
    final = DOCKERFILE.rpartition("FROM ")[2]
    assert "USER 65532:65532" in final
    assert "RUN" not in final
    assert 'ENTRYPOINT ["workflow-schedules"]' in final
    installs = [line for line in re.split(r"(?<!\\)\n", DOCKERFILE) if "pip install" in line]
    assert installs
    assert DOCKERFILE.count("--require-hashes") == 2
    assert re.search(r"^ARG BASE=", DOCKERFILE, re.MULTILINE)


def test_all_that_the_image_copies_is_let_through_to_it() -> None:
    let_through = {line[1:] for line in (REPOSITORY / ".dockerignore").read_text().splitlines() if line[:1] == "!"}
    copied = {
        word
        for line in DOCKERFILE.splitlines()
        if line.startswith("COPY ") and "--from" not in line
        for word in line.split()[1:-1]
    }
    for path in copied:
        assert (REPOSITORY / path).exists()
        assert any(path == known or path.startswith(f"{known}/") for known in let_through)


def test_the_cluster_gets_the_image_that_is_built_here() -> None:
    overlay = yaml.safe_load((INSTALL / "kustomization.yaml").read_text())
    assert [f"{image['newName']}:{image['newTag']}" for image in overlay["images"]] == [images.OPERATOR]
    assert [(INSTALL / path).resolve() for path in overlay["resources"]] == [REPOSITORY / "manifests"]


def test_a_runtime_asks_for_no_capability_that_the_machine_withholds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[list[str]] = []
    monkeypatch.setattr(runtime, "allowed", lambda: {"CAP_CHOWN"})
    monkeypatch.setattr(os, "execvp", lambda _program, arguments: ran.append(arguments))
    wanted = {"capabilities": {"bounding": ["CAP_CHOWN", "CAP_SYS_RESOURCE"], "ambient": None}, "cwd": "/"}
    (tmp_path / "config.json").write_text(json.dumps({"process": wanted, "ociVersion": "1.0.2"}))
    runtime.main(["--root", "/r", "create", "--bundle", str(tmp_path), "id"])
    limited = {"capabilities": {"bounding": ["CAP_CHOWN"], "ambient": []}, "cwd": "/"}
    assert json.loads((tmp_path / "config.json").read_text()) == {"process": limited, "ociVersion": "1.0.2"}

    (tmp_path / "process").write_text(json.dumps(wanted))
    runtime.main(["exec", f"--process={tmp_path / 'process'}", "id"])
    assert json.loads((tmp_path / "process").read_text()) == limited

    runtime.main(["delete", "id"])
    assert [arguments[0] for arguments in ran] == ["runc"] * 3
    assert ran[2] == ["runc", "delete", "id"]


BEFORE = """\
*mangle
:FORWARD ACCEPT [0:0]
COMMIT
*filter
:INPUT ACCEPT [0:0]
:FORWARD ACCEPT [0:0]
-A INPUT -s 10.0.0.0/8 -m comment --comment "somebody's own" -j ACCEPT
COMMIT
*nat
:POSTROUTING ACCEPT [0:0]
COMMIT
"""
WHILE_DOCKER_RAN = """\
*mangle
:FORWARD ACCEPT [0:0]
COMMIT
*filter
:INPUT ACCEPT [0:0]
:FORWARD DROP [7:420]
:DOCKER - [0:0]
:DOCKER-ISOLATION-STAGE-1 - [0:0]
:DOCKER-USER - [0:0]
-A INPUT -s 10.0.0.0/8 -m comment --comment "somebody's own" -j ACCEPT
-A FORWARD -j DOCKER-USER
-A FORWARD -o docker0 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A FORWARD -i br-0123456789ab -j ACCEPT
-A DOCKER-ISOLATION-STAGE-1 -j RETURN
COMMIT
*nat
:POSTROUTING ACCEPT [0:0]
:DOCKER - [0:0]
-A POSTROUTING -s 172.17.0.0/16 ! -o docker0 -j MASQUERADE
COMMIT
"""


@pytest.mark.parametrize("policy", ["ACCEPT", "DROP"])
def test_dockers_rules_go_and_those_of_others_stay(policy: str) -> None:
    """Left alone, forwarding would stay forbidden on a machine that allowed it."""
    wanted = BEFORE.replace(":FORWARD ACCEPT [0:0]\n-A", f":FORWARD {policy} [7:420]\n-A")
    assert firewall.without_docker(WHILE_DOCKER_RAN, policy=policy) == wanted


def test_every_node_is_told_the_ways_to_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = [
        {
            "metadata": {"name": name},
            "spec": {"podCIDR": f"10.244.{number}.0/24"},
            "status": {"addresses": [{"type": "InternalIP", "address": f"172.18.0.{number + 2}"}]},
        }
        for number, name in enumerate(("first", "second"))
    ]
    done: list[str] = []

    def docker(*arguments: str, **given: str) -> None:
        done.append(" ".join((*arguments, *given.values())))

    monkeypatch.setattr(network, "docker", docker)
    network.connect(lambda *_: json.dumps({"items": nodes}), nodes=2)
    assert done[1] == "exec first ip route replace 10.244.1.0/24 via 172.18.0.3"
    assert done[3] == "exec second ip route replace 10.244.0.0/24 via 172.18.0.2"
    assert json.loads(done[2].partition("conflist")[2])["plugins"][0]["ipam"]["ranges"] == [
        [{"subnet": "10.244.1.0/24"}]
    ]


def test_a_daemon_is_started_only_when_somebody_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CI", "WORKFLOW_SCHEDULES_START_DOCKER"):
        monkeypatch.delenv(name, raising=False)
    assert not daemon.is_asked_for()
    assert "nobody asked for one" in daemon.hindrance(may_start=False)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert "only root" in daemon.hindrance(may_start=True)
    with pytest.raises(Exception, match="only root") as raised:
        daemon.require(may_start=True)
    assert "hack/kind up --start-docker" in raised.value.remedy


def test_what_was_changed_on_the_machine_is_put_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parameter = tmp_path / "kernel" / "panic"
    parameter.parent.mkdir()
    parameter.write_text("1\n")
    monkeypatch.setattr(daemon, "_SYSTEM", tmp_path)
    daemon.note()
    parameter.write_text("10\n")
    daemon.note()  # what a second cluster finds is not what there was
    daemon.put_back()
    assert parameter.read_text() == "1"


def test_the_last_to_need_the_daemon_puts_the_machine_back(monkeypatch: pytest.MonkeyPatch) -> None:
    put_back: list[str] = []
    nodes = ["some node"]
    monkeypatch.setattr(daemon, "put_back", lambda: put_back.append("now"))
    monkeypatch.setattr(daemon, "_running_clusters", lambda: "".join(nodes))
    with daemon.in_use():
        pass
    assert not put_back, "a cluster runs, whoever made it"
    nodes.clear()
    with daemon.in_use():
        with daemon.in_use():
            pass
        assert not put_back, "somebody else is at work"
    assert put_back == ["now"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("up --name=", "'' is no name"),
        ("down --name=../../x", "'../../x' is no name"),
        ("down --name=.", "'.' is no name"),
        ("up --name=Bad", "'Bad' is no name"),
        ("up --name=-x", "'-x' is no name"),
        ("up --name=ü", "is no name"),
        ("up --name=" + "x" * 46, "up to 45 lower-case letters"),
        ("up --workers=-1", "'-1': write 0 to 9"),
        ("up --workers=ten", "'ten': write 0 to 9"),
    ],
)
def test_a_name_or_number_that_can_not_be_is_refused(cache: Path, arguments: str, says: str) -> None:
    """Once, an empty name was the folder of all clusters."""
    kept = cache / "kind" / "clusters" / "other"
    kept.mkdir(parents=True)
    for program in ("kind", *(["controlplane"] if "--name" in arguments else [])):
        command = [sys.executable, REPOSITORY / "hack" / program, *arguments.split()]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert says in done.stderr
    assert kept.exists()


def test_a_cluster_with_another_number_of_nodes_is_not_thrown_away() -> None:
    found = cluster.KindCluster(name="mine", has_registry=False, nodes=2)
    cluster.check_nodes(found, None)
    cluster.check_nodes(found, 1)
    with pytest.raises(Exception, match="is up with 1 workers, not 3"):
        cluster.check_nodes(found, 3)


@pytest.mark.parametrize(("workers", "is_freed"), [(0, False), (2, True)])
def test_only_a_node_that_is_not_alone_is_freed_of_its_taint_here(workers: int, is_freed: bool) -> None:
    """kind frees one that is alone, and fails where there is nothing to free it of."""
    patches = cluster.configuration(workers=workers, has_registry=False)["kubeadmConfigPatches"]
    assert any('"taints": []' in patch for patch in patches) is is_freed


def test_status_and_env_say_what_to_run_when_nothing_is_up() -> None:
    for verb in ("status", "env"):
        done = subprocess.run(
            [sys.executable, REPOSITORY / "hack" / "kind", verb], capture_output=True, text=True, check=False
        )
        assert "next: hack/kind up" in done.stdout + done.stderr


def test_the_cluster_of_a_clone_has_the_clones_name() -> None:
    assert re.fullmatch(r"[a-z0-9-]{1,40}", cluster.default_name())
