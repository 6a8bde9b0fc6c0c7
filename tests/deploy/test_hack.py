"""The verbs of hack/ and what hack/controlplane is made of; that a control plane works is for integration to show."""

from __future__ import annotations

import hashlib
import http.server
import io
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tarfile
import threading
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pytest

from mutate_lib import equivalents
from support.control_plane import REPOSITORY, binaries, downloads, install, lock, paths, plane, ports, processes

if TYPE_CHECKING:
    from collections.abc import Iterator

HACK = REPOSITORY / "hack"
VERBS = sorted(path for path in HACK.iterdir() if path.is_file() and os.access(path, os.X_OK))
PINS = sorted((HACK / "requirements").glob("*.txt"))


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of this test's own."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("WORKFLOW_SCHEDULES_CACHE", str(folder))
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    return folder


def run(*command: str | Path, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


# The verbs


@pytest.mark.parametrize("verb", VERBS, ids=lambda path: path.name)
def test_the_line_after_the_shebang_is_the_help_of_a_verb(verb: Path) -> None:
    shebang, comment = verb.read_text().splitlines()[:2]
    assert shebang.startswith("#!/usr/bin/env ")
    assert re.match(r"# \S", comment)


def test_help_lists_every_verb() -> None:
    listed = [line.split()[0] for line in run(HACK / "help").stdout.splitlines()]
    assert listed == [f"hack/{verb.name}" for verb in VERBS]


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A repository with some tiers, whose pytest and control plane only print what they were asked for."""
    root = tmp_path / "clone"
    for folder in ("hack", ".venv/bin", "tests/unit", "tests/timeline", "tests/integration"):
        (root / folder).mkdir(parents=True)
    shutil.copy(HACK / "test", root / "hack" / "test")
    for stub, says in {
        "hack/setup": "",
        "hack/controlplane": 'echo "controlplane $*" >&2',
        "hack/kind": 'echo "kind $*" >&2',
        ".venv/bin/python": 'echo "$*"',
    }.items():
        (root / stub).write_text(f"#!/bin/sh\n{says}\n")
        (root / stub).chmod(0o755)
    return root


@pytest.mark.parametrize(
    ("arguments", "want"),
    [
        ("", "-m pytest tests/unit tests/timeline tests/integration"),
        ("unit", "-m pytest tests/unit"),
        ("timeline unit -k one -x", "-m pytest tests/timeline tests/unit -k one -x"),
        ("-q", "-m pytest tests/unit tests/timeline tests/integration -q"),
        ("-q tests/unit", "-m pytest -q tests/unit"),
        ("unit -k e2e", "-m pytest tests/unit -k e2e"),
    ],
)
def test_leading_words_select_tiers_and_the_rest_goes_to_pytest(clone: Path, arguments: str, want: str) -> None:
    assert run(clone / "hack" / "test", *arguments.split()).stdout.strip() == want


def test_a_tier_that_does_not_exist_is_said_so(clone: Path) -> None:
    done = run(clone / "hack" / "test", "unit", "faults")
    assert done.returncode == 2
    assert "tests/integration/faults does not exist" in done.stderr
    assert "next: hack/test" in done.stderr


@pytest.mark.parametrize(
    ("tiers", "want"),
    [("unit timeline", ""), ("", "controlplane binaries\n"), ("integration", "controlplane binaries\n")],
)
def test_programs_are_made_before_the_tests_that_need_them(clone: Path, tiers: str, want: str) -> None:
    assert run(clone / "hack" / "test", *tiers.split()).stderr == want


def test_images_are_made_before_the_tests_that_need_them(clone: Path) -> None:
    (clone / "tests" / "e2e").mkdir()
    assert run(clone / "hack" / "test", "e2e").stderr == "kind prepare\n"
    assert run(clone / "hack" / "test").stderr == "controlplane binaries\nkind prepare\n"


def test_env_of_what_is_not_up_says_what_to_run() -> None:
    done = run(sys.executable, HACK / "controlplane", "env", "--name", "nobody")
    assert (done.returncode, done.stdout) == (1, "")
    assert "next: hack/controlplane up --name nobody" in done.stderr


# The pins


@pytest.mark.parametrize("pins", PINS, ids=lambda path: path.name)
def test_every_requirement_is_pinned_by_hash_and_no_index_is_named(pins: Path) -> None:
    text = pins.read_text()
    requirements = re.split(r"\n(?=\S)", text.strip())
    assert all(re.match(r"[\w.-]+==\S+", requirement) for requirement in requirements)
    assert all("--hash=sha256:" in requirement for requirement in requirements)
    assert not re.search(r"https?://|--(extra-)?index-url|--find-links", text)


def test_whatever_pyproject_requires_is_pinned() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    pinned = {
        name.lower()
        for name in re.findall(r"^([\w.-]+)==", (HACK / "requirements" / "dev.txt").read_text(), re.MULTILINE)
    }
    required = [
        *project["project"]["dependencies"],
        *project["dependency-groups"]["dev"],
        *project["build-system"]["requires"],
    ]
    assert {re.match(r"[\w.-]+", requirement)[0].lower() for requirement in required} <= pinned


# Mutants


def test_each_change_that_is_said_to_change_nothing_is_of_the_core_and_has_a_reason() -> None:
    groups = (HACK / "mutate_lib" / "equivalent.txt").read_text().strip().split("\n\n")[1:]
    for reason, *changes in map(str.splitlines, groups):
        assert reason.startswith("# ")
        assert changes
        for change in changes:
            module = change.partition(".")[0]
            assert (REPOSITORY / "operator" / "workflow_schedules" / "core" / f"{module}.py").is_file()
            assert re.fullmatch(r"\w+\.[\w.]+: .*  ->(  .*)?", change)


@pytest.mark.parametrize(
    ("tried", "want"),
    [
        ([("f: a  ->  b", False)], []),
        ([("f: a  ->  b", True)], ["listed and killed: f: a  ->  b"]),
        ([("f: a  ->  b", True), ("f: a  ->  b", False)], []),
        ([("f: a  ->  c", False)], ["no such change any more: f: a  ->  b"]),
        ([("f: a  ->  b", False), ("f: a  ->  c", True)], []),
    ],
    ids=["nobody notices", "somebody does", "somebody does of one of two", "it is not there", "another is noticed"],
)
def test_a_change_that_is_said_to_change_nothing_is_there_and_nobody_notices_it(
    tried: list[tuple[str, bool]], want: list[str]
) -> None:
    assert list(equivalents.wrong(frozenset({"f: a  ->  b"}), tried)) == want


# The bench


def test_the_bench_of_decisions_measures_the_situations_that_it_names(tmp_path: Path) -> None:
    """It refuses a row whose decision is another one; how long they take is not for a test to say."""
    script, file = HACK / "bench_lib" / "decide_bench.py", tmp_path / "rows.json"
    done = run(sys.executable, script, "--rounds", "1", "--json", file)
    names = [row["name"] for row in json.loads(file.read_text())["rows"]]
    assert {name.partition(",")[0] for name in names} == {
        "nothing due", "admitted", "blocked", "missed", "Baseline", "a run",
    }  # fmt: skip
    assert [line[:36].rstrip() for line in done.stdout.splitlines() if line.endswith("%")] == names
    assert done.returncode == ("over the limit" in done.stderr)


# Locks


def test_a_lock_is_held_by_one_and_leaves_no_file(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with lock.hold(path, purpose="test"), pytest.raises(lock.BusyError), lock.hold(path, purpose="test", wait=False):
        pass
    assert not path.exists()


def test_who_waits_for_a_lock_is_told_for_whom_and_gets_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, got = tmp_path / "lock", threading.Event()

    def second() -> None:
        with lock.hold(path, purpose="it is testing"):
            got.set()

    waiting = threading.Thread(target=second)
    with lock.hold(path, purpose="test"):
        waiting.start()
        assert not got.wait(0.2)
    waiting.join(5)
    assert got.is_set()
    assert f"waiting for process {os.getpid()} to finish: it is testing" in capsys.readouterr().err


# Processes


def test_an_interrupt_ends_the_command_and_its_children(tmp_path: Path) -> None:
    def interrupt(_seconds: float) -> NoReturn:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        processes.run_group(
            ["sh", "-c", "sleep 60 & sleep 60"], log=tmp_path / "log", cwd=tmp_path, every_seconds=0.2, tick=interrupt
        )
    assert processes.processes_in(tmp_path) == []


def test_what_a_killed_owner_left_is_cleared_and_others_are_left_alone() -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    owners = {"dead": gone.pid, "alive": os.getpid()}
    children = {}
    for name, pid in owners.items():
        folder = paths.run_dir(name)
        folder.mkdir(parents=True)
        state = {"ready": False, "owner": {"pid": pid, "started": processes.started_at(pid)}}
        (folder / "state.json").write_text(json.dumps(state))
        children[name] = subprocess.Popen(["sleep", "60"], cwd=folder)

    plane.clear_abandoned()

    assert plane.names() == ["alive"]
    assert children["dead"].wait(5) < 0
    assert children["alive"].poll() is None
    assert plane.down("alive")
    assert children["alive"].wait(5) < 0
    assert plane.names() == []


def test_what_runs_the_operator_is_left_out_of_what_is_installed() -> None:
    kinds = ["Namespace", "Deployment", "Role"]
    text = "---\n".join(f"apiVersion: v1\nkind: {kind}\nspec:\n  kind: Deployment\n" for kind in kinds)
    left = re.findall(r"^kind: (\w+)$", install.without_operator(text), re.MULTILINE)
    assert left == ["Namespace", "Role"]


# Programs


def test_free_ports_differ_and_nobody_listens_on_them(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as busy:
        busy.bind(("127.0.0.1", 0))
        busy.listen()
        taken = busy.getsockname()[1]
        monkeypatch.setattr(ports, "_LOWEST", taken - 3)
        monkeypatch.setattr(ports, "_HIGHEST", taken + 4)
        found = ports.free_ports(3)
    assert len(set(found)) == 3
    assert taken not in found


def test_the_cache_key_follows_the_pins(tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    shutil.copytree(paths.TOOLS, tools)
    before = paths.tools_key(tools=tools)
    assert before == paths.tools_key()
    assert before.startswith(paths.module_version("k8s.io/kubernetes"))
    (tools / "go.sum").write_text((tools / "go.sum").read_text() + "\n")
    assert paths.tools_key(tools=tools) != before


def test_assets_that_are_named_but_not_there_are_said_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    with pytest.raises(Exception, match="there is no program etcd") as raised:
        binaries.find_or_make()
    assert "unset KUBEBUILDER_ASSETS" in raised.value.remedy


@pytest.fixture
def published() -> Iterator[tuple[str, dict[str, bytes]]]:
    """The address of a server on this machine and what it has, by path."""
    files = _published_files()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            content = files.get(self.path)
            self.send_response(404 if content is None else 200)
            self.end_headers()
            self.wfile.write(content or b"")

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        yield f"http://127.0.0.1:{server.server_port}", files
        server.shutdown()
        serving.join()


def _published_files() -> dict[str, bytes]:
    processor = paths.target()[1]
    kubernetes, etcd, kwok = (
        program.module for program in (binaries.PROGRAMS[1], binaries.PROGRAMS[0], binaries.PROGRAMS[-1])
    )
    files = {}
    for program in binaries.PROGRAMS:
        version = paths.module_version(program.module)
        if program.module == kubernetes:
            path = f"/{version}/bin/linux/{processor}/{program.name}"
            files |= {path: program.name.encode(), f"{path}.sha256": _sum(program.name.encode()).encode()}
        elif program.module == kwok:
            files[f"/kubernetes-sigs/kwok/releases/download/{version}/{program.name}-linux-{processor}"] = (
                program.name.encode()
            )
        else:
            assert program.module == etcd
            folder, name = f"/etcd-io/etcd/releases/download/{version}", f"etcd-{version}-linux-{processor}"
            packed = io.BytesIO()
            with tarfile.open(fileobj=packed, mode="w:gz") as archive:
                member = tarfile.TarInfo(f"{name}/etcd")
                member.size = 4
                archive.addfile(member, io.BytesIO(b"etcd"))
            files[f"{folder}/{name}.tar.gz"] = packed.getvalue()
            files[f"{folder}/SHA256SUMS"] = f"{_sum(packed.getvalue())}  {name}.tar.gz\n".encode()
    return files


def _sum(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@pytest.mark.skipif(sys.platform != "linux", reason="nothing is published for other systems")
def test_published_programs_are_downloaded_and_checked(published: tuple[str, dict[str, bytes]], tmp_path: Path) -> None:
    address, files = published
    assert downloads.download(binaries.PROGRAMS, into=tmp_path, kubernetes=address, releases=address)
    for program in binaries.PROGRAMS:
        assert (tmp_path / program.name).read_text() == program.name
        assert os.access(tmp_path / program.name, os.X_OK)

    broken = tmp_path / "broken"
    broken.mkdir()
    path = next(path for path in files if path.endswith("/kube-apiserver"))
    files[path] = b"something else"
    assert not downloads.download(binaries.PROGRAMS, into=broken, kubernetes=address, releases=address)
    assert sorted(entry.name for entry in broken.iterdir()) == ["etcd"]


@pytest.mark.skipif(sys.platform != "linux", reason="nothing is published for other systems")
def test_an_address_that_does_not_answer_is_given_up_soon(tmp_path: Path) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        assert not downloads.download(binaries.PROGRAMS, into=tmp_path, kubernetes=address, releases=address)
