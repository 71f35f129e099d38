"""The files of docs/clusters, run on one machine with stand-ins for what schedulers give."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from example_runs import ROOT, free_port
from package_runs import PACKAGE, with_package

FILES = ROOT / "docs" / "clusters"
REQUIREMENTS = ROOT / "tools" / "requirements.txt"
LIMIT_S = 240

# Takes srun's options off, and starts the rest once for each node.
SRUN = """#!/bin/bash
while [[ $1 == --* ]]; do shift; done
for ((node = 0; node < SLURM_NNODES; ++node)); do SLURM_NODEID=$node "$@" & pids+=($!); done
status=0
for pid in "${pids[@]}"; do wait "$pid" || status=$?; done
exit $status
"""


def surroundings(folder: Path, dies: dict[str, list[int]]) -> dict[str, str]:
    """A folder with train.py, and programs that are found."""
    program = Path(__file__).with_name("coming_back.py")
    found = folder / "found"
    found.mkdir()
    (folder / "train.py").write_text(
        f"import runpy, sys\nsys.argv[1:] = [{str(found)!r}, 'ring']\n"
        f"runpy.run_path({str(program)!r}, run_name='__main__')\n"
    )
    programs = folder / "bin"
    programs.mkdir()
    for name, text in (("srun", SRUN), ("scontrol", "#!/bin/bash\necho 127.0.0.1\n")):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    places = [programs, PACKAGE / "bin", Path(sys.executable).parent, os.environ["PATH"]]
    return with_package({"DIES": json.dumps(dies), "PATH": os.pathsep.join(map(str, places))})


def check_all_finished(folder: Path, workers: int, came_back: int) -> None:
    found = [json.loads((folder / "found" / f"found-{r}.json").read_text()) for r in range(workers)]
    assert len({rank["steps"] for rank in found}) == 1
    assert [rank["first"] > 0 for rank in found] == [r == came_back for r in range(workers)]
    assert all(rank["mean"] == found[0]["mean"] for rank in found)


def test_slurm(tmp_path: Path) -> None:
    environment = surroundings(tmp_path, {"2": [8]})
    script = tmp_path / "slurm.sh"
    script.write_text((FILES / "slurm.sh").read_text().replace("29500", str(free_port())))
    said = subprocess.run(
        ["bash", str(script)],
        cwd=tmp_path,
        env={
            **environment,
            "SLURM_JOB_NODELIST": "node[1-2]",
            "SLURM_JOB_ID": "7",
            "SLURM_NNODES": "2",
            "SLURM_CPUS_PER_TASK": "2",
            "SLURM_SUBMIT_DIR": str(tmp_path),
            "WORKERS_PER_NODE": "2",
        },
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert said.returncode == 0, said.stderr
    assert "rank 2 ended by SIGKILL" in said.stderr
    check_all_finished(tmp_path, 4, came_back=2)
    assert not (tmp_path / "members-7-0").exists()  # its cards have the token


def test_skypilot(tmp_path: Path) -> None:
    """Both nodes are on this machine, and see one folder."""
    task = yaml.safe_load((FILES / "skypilot.yaml").read_text())
    environment = surroundings(tmp_path, {"1": [8]})
    run = task["run"].replace("29500", str(free_port())).replace("/shared", str(tmp_path))
    assert task["volumes"].keys() == {"/shared"}

    def start(rank: int) -> subprocess.Popen[str]:
        told = {
            "SKYPILOT_NODE_IPS": "127.0.0.1\n127.0.0.2",
            "SKYPILOT_NODE_RANK": str(rank),
            "SKYPILOT_NUM_NODES": "2",
            "SKYPILOT_NUM_GPUS_PER_NODE": "2",
            "SKYPILOT_TASK_ID": "sky-7",
        }
        return subprocess.Popen(
            ["bash", "-c", run],
            cwd=tmp_path,
            env=environment | told,
            stderr=subprocess.PIPE,
            text=True,
        )

    nodes = [start(rank) for rank in range(2)]
    try:
        said = [node.communicate(timeout=LIMIT_S)[1] for node in nodes]
    finally:
        for node in nodes:
            node.kill()
    assert [node.returncode for node in nodes] == [0, 0], said
    assert "rank 1 ended by SIGKILL" in said[0]
    check_all_finished(tmp_path, 4, came_back=1)
    assert not list(tmp_path.glob("members-sky-7-*"))


def documents() -> dict[str, Any]:
    texts = (FILES / "kubernetes.yaml").read_text()
    return {each["kind"]: each for each in yaml.safe_load_all(texts)}


def test_kubernetes_has_these_fields() -> None:
    for each in documents().values():
        kubernetes_validate.validate(each, "1.33", strict=True)


def test_names_of_kubernetes_lead_to_each_other() -> None:
    found = documents()
    pod = found["Job"]["spec"]["template"]["spec"]
    service = found["Service"]
    assert pod["subdomain"] == service["metadata"]["name"]
    assert service["spec"]["selector"] == {"job-name": found["Job"]["metadata"]["name"]}
    claims = [each.get("persistentVolumeClaim", {}).get("claimName") for each in pod["volumes"]]
    assert found["PersistentVolumeClaim"]["metadata"]["name"] in claims
    (worker,) = pod["containers"]
    mounts = {each["name"] for each in worker["volumeMounts"]}
    assert mounts == {each["name"] for each in pod["volumes"]}
    used = set(re.findall(r"\$\((\w+)\)", " ".join(worker["args"])))
    assert used <= {each["name"] for each in worker["env"]}
    job = found["Job"]["spec"]
    spread = pod["topologySpreadConstraints"][0]["labelSelector"]["matchLabels"]
    assert spread == job["template"]["metadata"]["labels"]
    assert f"--hosts={job['completions']}" in worker["args"]
    assert job["parallelism"] == job["completions"]


def test_the_secret_has_a_mode_that_gossamer_takes(tmp_path: Path) -> None:
    """As Kubernetes mounts it: of root, and readable by the group of the pod."""
    pod = documents()["Job"]["spec"]["template"]["spec"]
    (mode,) = [each["secret"]["defaultMode"] for each in pod["volumes"] if "secret" in each]
    assert mode == 0o440
    assert pod["securityContext"]["fsGroup"] > 0
    (worker,) = pod["containers"]
    (mount,) = [each for each in worker["volumeMounts"] if each["name"] == "secret"]
    variables = {each["name"]: each.get("value", "") for each in worker["env"]}
    assert variables["GOSSAMER_SECRET_FILE"].startswith(mount["mountPath"] + "/")
    file = tmp_path / "secret"
    file.write_text("0123456789abcdef" * 4)
    for bits, is_taken in ((mode, True), (0o644, False)):
        file.chmod(bits)
        code = "from gossamer import _core; print(_core.token_by_secret('nonce') is not None)"
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=with_package({"GOSSAMER_SECRET_FILE": str(file)}),
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.stdout == "True\n") == is_taken, done.stderr
        assert is_taken or "with mode 0644" in done.stderr


def pod_command(index: int, hosts: int, shared: Path, port: int) -> list[str]:
    (worker,) = documents()["Job"]["spec"]["template"]["spec"]["containers"]
    words = [*worker["command"], *worker["args"]]
    changes = {
        "$(HOST)": str(index),
        "$(JOB)": "0b1c",
        "/shared": str(shared),
        "gossip-0.gossip:29500": f"127.0.0.1:{port}",
        "--hosts=4": f"--hosts={hosts}",
        "--workers=4": "--workers=1",
    }
    for old, new in changes.items():
        assert any(old in word for word in words), old
        words = [word.replace(old, new) for word in words]
    return words


def children_of(pid: int) -> list[int]:
    return list(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def end_all_of(pid: int) -> None:
    """A pod with all its processes, at once."""
    for each in (pid, *children_of(pid)):
        os.kill(each, signal.SIGKILL)


@pytest.mark.parametrize("loses", ["all its processes", "its launcher"])
def test_a_new_pod_takes_the_place_of_one_that_failed(tmp_path: Path, loses: str) -> None:
    """Its workers live on where only the launcher ends. They end once others have their place."""
    hosts, port = 3, free_port()
    never = 1_000_000  # steps: rank 1's first life does not end by itself
    environment = surroundings(tmp_path, {"1": [never]})

    def start(index: int) -> subprocess.Popen[bytes]:
        words = pod_command(index, hosts, tmp_path, port)
        return subprocess.Popen(words, cwd=tmp_path, env=environment)

    pods = [start(index) for index in range(hosts)]
    orphans: list[int] = []
    try:
        limit = time.monotonic() + LIMIT_S
        card = tmp_path / "members-0b1c" / "0" / "1.json"
        others = [tmp_path / "found" / f"there-{rank}" for rank in (0, 2)]
        while not (card.exists() and all(each.exists() for each in others)):
            assert time.monotonic() < limit
            time.sleep(0.05)
        time.sleep(1)
        if loses == "its launcher":
            orphans = children_of(pods[1].pid)
            pods[1].kill()
        else:
            end_all_of(pods[1].pid)
        pods[1].wait()
        pods[1] = start(1)
        assert [pod.wait(LIMIT_S) for pod in pods] == [0] * hosts
        while any(map(is_alive, orphans)):
            assert time.monotonic() < limit, "two workers of one rank"
            time.sleep(0.05)
    finally:
        for pod in pods:
            if pod.poll() is None:
                end_all_of(pod.pid)
                pod.wait()
        for orphan in filter(is_alive, orphans):
            os.kill(orphan, signal.SIGKILL)
    check_all_finished(tmp_path, hosts, came_back=1)


def instructions() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in (FILES / "Dockerfile").read_text().splitlines():
        word, _, rest = line.partition(" ")
        if word != "#":
            found.setdefault(word, []).append(rest)
    return found


def test_the_image_is_of_the_python_and_the_torch_of_its_wheel() -> None:
    found = instructions()
    (image,) = found["FROM"]
    (python,) = re.findall(r"python:3\.(\d+)", image)
    assert any(f"gossamer-*-cp3{python}-*.whl" in line for line in found["COPY"])
    versions = re.findall(r"torch==([\d.]+)", " ".join(found["RUN"]))
    assert set(versions) == set(re.findall(r"^torch==([\d.]+)", REQUIREMENTS.read_text(), re.M))


def test_what_the_image_runs_is_the_first_process_of_a_container(tmp_path: Path) -> None:
    """Of a PID namespace: its workers train to the end, and one of them comes back."""
    alone = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]
    if subprocess.run([*alone, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("this machine lets us make no PID namespaces")
    found = instructions()
    words = [*json.loads(found["ENTRYPOINT"][0]), *json.loads(found["CMD"][0])]
    done = subprocess.run(
        [*alone, *words],
        cwd=tmp_path,
        env=surroundings(tmp_path, {"2": [8]}),
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "rank 2 ended by SIGKILL" in done.stderr
    check_all_finished(tmp_path, 4, came_back=2)
