"""`gossamer train` as a user runs it: results, resume, bad input, interruption."""

import gzip
import json
import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
import tomllib
from train_runs import GOSSAMER, ROOT, checkpoint_bytes, small_text, train, wait_for


@pytest.fixture
def text(tmp_path: Path) -> list[str]:
    return [*small_text(tmp_path), "--hosts", "2", "--per-host", "2"]


def test_summary_has_the_promised_keys(text: list[str]) -> None:
    done = train(*text, "--steps", "6", "--json", "--gamma", "0.5")
    summary = json.loads(done.stdout)
    promised = (
        "topology pattern optimizer workers steps ms_per_step exposed_ms bytes_per_host_per_step "
        "val_loss disagreement seed"
    )
    assert set(promised.split()) <= set(summary)
    assert summary["topology"] == "alternating_exponential_ring"
    assert summary["workers"] == 4
    assert 0 < summary["val_loss"] < 6


def test_bytes_per_host_are_half_a_payload_for_the_alternating_ring(text: list[str]) -> None:
    text[text.index("--hosts") + 1] = "4"
    summary = json.loads(train(*text, "--steps", "8", "--json", "--buckets", "8").stdout)
    payload = 4 * summary["parameters"]
    # Padding to whole cache lines is what may be sent on top.
    assert payload / 2 <= summary["bytes_per_host_per_step"] < 1.05 * payload / 2 + 64 * 8 * 4


@pytest.mark.parametrize(("codec", "bytes_per_element"), [("bf16", 2), ("int8", 260 / 256)])
def test_coded_payloads_send_fewer_bytes(
    codec: str, bytes_per_element: float, text: list[str]
) -> None:
    flags = ["--steps", "8", "--json", "--buckets", "4", "--topology", "ring"]
    plain = json.loads(train(*text, *flags).stdout)
    coded = json.loads(train(*text, *flags, "--codec", codec).stdout)
    ratio = coded["bytes_per_host_per_step"] / plain["bytes_per_host_per_step"]
    assert ratio == pytest.approx(bytes_per_element / 4, rel=0.02)
    assert coded["val_loss"] == pytest.approx(plain["val_loss"], rel=0.02)
    assert coded["val_loss"] != plain["val_loss"]


def test_late_neighbours_can_be_skipped(text: list[str]) -> None:
    summary = json.loads(train(*text, "--steps", "8", "--json", "--late", "skip").stdout)
    assert 0 < summary["val_loss"] < 6


@pytest.mark.parametrize(
    "method",
    [
        "--optimizer accum_adamw --topology aer",
        "--optimizer momentum --pattern atc --topology ring",
        "--optimizer adamw --pattern allreduce",
        "--optimizer adamw --topology one_peer_exponential --update backward",
        "--optimizer adamw --topology ring --adaptive-average 2",
        "--optimizer adamw --topology aer --codec bf16",
        "--optimizer adamw --pattern exact_diffusion --topology ring --lazy",
        "--optimizer sgd --pattern extra --topology ring",
        "--optimizer accum_adamw --pattern gradient_tracking --topology aer",
        "--optimizer momentum --pattern dmsgd --topology aer",
        "--optimizer momentum --pattern qg_dmsgd --topology aer",
        "--optimizer adamw --pattern gradient_tracking_atc --topology aer",
        "--optimizer adamw --pattern push_sum --topology random_directed --degree 2",
        "--optimizer momentum --pattern slowmo --topology complete --local-steps 3 --outer-every 3",
        "--optimizer adamw --pattern noloco --topology ring --outer-every 3",
        "--optimizer sgd --pattern dsgd_ac --topology ring --consensus-power 2",
    ],
)
def test_resume_goes_on_bit_for_bit(method: str, text: list[str], tmp_path: Path) -> None:
    out = tmp_path / "run"
    saved = "--steps 8 --checkpoint-every 4 --keep 3 --json --out".split()
    whole = json.loads(train(*text, *method.split(), *saved, str(out)).stdout)
    expected = checkpoint_bytes(out, 8)
    assert len(expected) == 4
    shutil.rmtree(out / "checkpoints" / "step-00000008")
    resumed = json.loads(train("--resume", str(out), "--json").stdout)
    assert checkpoint_bytes(out, 8) == expected
    assert resumed["val_loss"] == whole["val_loss"]
    assert resumed["steps"] == 8


@pytest.mark.parametrize(
    ("special", "plain"),
    [
        ("--pattern dsgd_ac --consensus-power 0", "--pattern cwa"),
        ("--pattern push_sum", "--pattern atc"),
        (
            "--pattern slowmo --global-average 3 --outer-every 3 --outer-momentum 0 --outer-lr 1",
            "--pattern atc --global-average 3",
        ),
    ],
)
def test_special_cases_are_the_plain_patterns(special: str, plain: str, text: list[str]) -> None:
    flags = [*text, "--steps", "7", "--json"]
    found = [json.loads(train(*flags, *method.split()).stdout) for method in (special, plain)]
    assert found[0]["val_loss"] == found[1]["val_loss"]
    assert found[0]["disagreement"] == found[1]["disagreement"]


def test_less_consensus_leaves_workers_further_apart(text: list[str]) -> None:
    flags = [*text, "--steps", "12", "--json", "--pattern", "dsgd_ac", "--topology", "ring"]
    apart = [
        json.loads(train(*flags, "--consensus-power", power).stdout)["disagreement"]
        for power in ("0", "3")
    ]
    assert apart[1] > 2 * apart[0]


def test_one_seed_one_result_for_any_number_of_kernel_threads(
    text: list[str], tmp_path: Path
) -> None:
    results = []
    for name, threads in (("a", "1"), ("b", "1"), ("c", "2")):
        out = tmp_path / name
        saved = f"--steps 5 --checkpoint-every 5 --kernel-threads {threads} --out".split()
        train(*text, *saved, str(out))
        results.append(checkpoint_bytes(out, 5))
    assert results[0] == results[1] == results[2]
    assert len(results[0]) == 4


def test_run_folder_tells_what_was_run(text: list[str], tmp_path: Path) -> None:
    out = tmp_path / "run"
    train(*text, "--steps", "4", "--lr", "0.002", "--evaluate-every", "2", "--out", str(out))
    assert "lr = 0.002" in (out / "run.toml").read_text()
    lines = (out / "metrics.rank3.jsonl").read_text().splitlines()
    steps = [json.loads(line) for line in lines]
    assert [line["step"] for line in steps if "loss" in line] == [1, 2, 3, 4]
    assert [line["step"] for line in steps if "val_loss" in line] == [2, 4]
    batch = tomllib.loads((out / "run.toml").read_text())["data"]["global_batch"]
    assert 4 * steps[0]["samples"] == batch
    rate = 1e3 * steps[0]["samples"] / steps[0]["step_ms"]
    assert steps[0]["samples_per_s"] == pytest.approx(rate)
    assert json.loads((out / "summary.json").read_text())["steps"] == 4
    again = train("--out", str(out), check=False)
    assert again.returncode == 2
    assert "already holds a run" in again.stderr


def test_metrics_of_a_resumed_run_have_each_step_once(text: list[str], tmp_path: Path) -> None:
    out = tmp_path / "run"
    train(*text, "--steps", "4", "--checkpoint-every", "4", "--out", str(out))
    metrics = out / "metrics.rank1.jsonl"
    metrics.write_text(metrics.read_text() + '{"step":5,"loss":7.0}\n{"step":6,"lo')
    train("--resume", str(out), "--steps", "6")
    lines = [json.loads(line) for line in metrics.read_text().splitlines()]
    assert [line["step"] for line in lines if "loss" in line] == [1, 2, 3, 4, 5, 6]
    assert all(line.get("loss") != 7.0 for line in lines)


def test_auto_resume_begins_and_goes_on(text: list[str], tmp_path: Path) -> None:
    out = tmp_path / "run"
    flags = [*text, "--auto-resume", "--json", "--out", str(out), "--checkpoint-every"]
    assert json.loads(train(*flags, "3", "--steps", "3").stdout)["steps"] == 3
    (out / "summary.json").unlink()
    gone_on = json.loads(train(*flags, "0", "--steps", "5").stdout)
    assert gone_on["steps"] == 5
    assert [line["step"] for line in losses_in(out)] == [1, 2, 3, 4, 5]
    shutil.rmtree(out / "checkpoints")
    refused = train(*flags, "0", "--steps", "2", check=False)  # it has ended: nothing is lost
    assert (refused.returncode, "already holds a run" in refused.stderr) == (2, True)
    (out / "summary.json").unlink()
    assert json.loads(train(*flags, "0", "--steps", "2").stdout)["steps"] == 2
    assert [line["step"] for line in losses_in(out)] == [1, 2]


def losses_in(out: Path) -> list[dict[str, float]]:
    lines = map(json.loads, (out / "metrics.rank0.jsonl").read_text().splitlines())
    return [line for line in lines if "loss" in line]


def test_recipe_is_read_and_flags_win(text: list[str], tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.toml"
    recipe.write_text('[run]\nsteps = 3\nseed = 5\n[algorithm]\ntopology = "ring"\n')
    summary = json.loads(train(str(recipe), *text, "--seed", "6", "--json").stdout)
    assert (summary["steps"], summary["seed"], summary["topology"]) == (3, 6, "ring")


BAD = {
    "--topology rign": ["unknown topology", "'rign'", "did you mean 'ring'?"],
    "--topology hypercube --hosts 3 --per-host 1": ["hypercube", "3"],
    "--pattern allredcue": ["unknown pattern", "did you mean 'allreduce'?"],
    "--optimizer adamm": ["unknown optimizer", "did you mean 'adam'?"],
    "--topolgy ring": ["--topolgy", "did you mean '--topology'?"],
    "--lr -1": ["lr must be", "-1"],
    "--beta2 1.5": ["beta2 must be in [0, 1)", "1.5"],
    "--steps zero": ["--steps", "zero"],
    "--global-batch 2": ["global_batch", "number of workers"],
    "--pattern exact_diffusion --topology ring": ["eigenvalues of W", "lazy"],
    "--pattern qg_dmsgd": ["momentum of the optimizer", "adamw"],
    "--topology random_directed": ["cwa", "doubly stochastic", "random_directed", "push_sum"],
    "--pattern push_sum --topology random_directed --codec bf16": ["codec", "doubly stochastic"],
    "--pattern slowmo": ["outer_every", "--outer-every"],
    "--pattern slowmo --outer-every 4": ["global average", "--global-average 4", "noloco"],
    "--pattern noloco --outer-every 2 --late skip": ["late", "pattern noloco"],
    "--pattern noloco --outer-every 2 --outer-lr 0": ["outer_lr must be", "0"],
    "--consensus-power -1": ["consensus_power must be", "-1"],
    "--update backward --clip-norm 1": ["clip_norm", "backward"],
    "--checkpoint-every 2": ["run folder", "--out"],
    "--data /nowhere/at/all": ["/nowhere/at/all"],
    "--per-host 0": ["per-host", "0"],
    "--link-rate fast": ["link_rate", "fast"],
    "--gamma 1 --link-rate 1Gbit/s": ["link_rate", "gamma"],
    "--resume /nowhere": ["/nowhere"],
    "--auto-resume": ["--out FOLDER"],
    "--checkpoint-every -3": ["checkpoint_every must be not negative", "-3"],
    "--evaluate-every -1": ["evaluate_every must be not negative", "-1"],
    "--width -16": ["width must be not negative", "-16"],
    "--local-steps -2": ["local_steps must be not negative", "-2"],
    "--kernel-threads 0": ["kernel_threads must be at least 1", "0"],
    "--clip-norm nan": ["clip_norm must be finite", "nan"],
    "--final-lr -1": ["final_lr must be finite and not negative", "-1"],
    "--timeout-s nan": ["timeout_s must be positive", "nan", "inf means no limit"],
    "--timeout-s 0": ["timeout_s must be positive"],
    "--suspect-s 2": ["suspect_s must be 3 or more seconds", "got 2"],
    os.fsdecode(b"--suffixes caf\xe9"): ["suffixes must be UTF-8", "caf\ufffd", "rename"],
}


@pytest.mark.parametrize("flags", BAD)
def test_bad_input_gives_one_clear_message(flags: str, text: list[str]) -> None:
    done = train(*text, "--steps", "2", *flags.split(), check=False)
    message = done.stderr.strip().splitlines()[-1]
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert message.startswith("["), message
    for part in BAD[flags]:
        assert part in message


@pytest.mark.parametrize(
    ("recipe", "parts"),
    [
        ("[run]\nstep = 3\n", ["recipe.toml:2", "'step'", "did you mean 'steps'?"]),
        ("[runs]\nsteps = 3\n", ["'runs'", "did you mean 'run'?"]),
        ('[run]\nsteps = "many"\n', ["recipe.toml:2", "steps"]),
        ("[run\n", ["recipe.toml:1"]),
    ],
)
def test_bad_recipe_names_file_line_and_word(recipe: str, parts: list[str], tmp_path: Path) -> None:
    file = tmp_path / "recipe.toml"
    file.write_text(recipe)
    done = train(str(file), check=False)
    assert (done.returncode, done.stdout) == (2, "")
    for part in parts:
        assert part in done.stderr


def test_empty_data_file_is_refused(tmp_path: Path) -> None:
    empty = tmp_path / "empty.txt"
    empty.touch()
    done = train("--data", str(empty), check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "empty.txt" in done.stderr


def test_gradient_that_is_not_finite_ends_the_run_with_the_culprit(
    text: list[str], tmp_path: Path
) -> None:
    out = tmp_path / "run"
    flags = "--steps 40 --optimizer sgd --lr 1e20 --warmup 0 --checkpoint-every 1 --out".split()
    done = train(*text, *flags, str(out), check=False)
    assert done.returncode == 3, done.stderr
    message = done.stderr.strip().splitlines()[-1]
    for part in ("gradient of parameter", "worker", "step", "must be finite", "lower lr"):
        assert part in message


@pytest.fixture
def saved_run(text: list[str], tmp_path: Path) -> Path:
    out = tmp_path / "run"
    train(*text, *"--steps 4 --checkpoint-every 2 --out".split(), str(out))
    return out


@pytest.mark.parametrize("damage", ["truncated", "flipped"])
def test_damaged_checkpoint_is_named_and_nothing_is_lost(damage: str, saved_run: Path) -> None:
    file = saved_run / "checkpoints" / "step-00000004" / "worker-00002.safetensors"
    content = bytearray(file.read_bytes())
    if damage == "truncated":
        content = content[: len(content) // 2]
    else:
        content[len(content) // 2] ^= 4
    file.write_bytes(content)
    before = {path: path.read_bytes() for path in saved_run.glob("checkpoints/**/*.safetensors")}
    done = train("--resume", str(saved_run), "--steps", "6", check=False)
    assert (done.returncode, done.stdout) == (2, "")
    message = done.stderr.strip().splitlines()[-1]
    assert "worker-00002.safetensors" in message
    assert "step-00000002" in message  # the remedy: an earlier checkpoint
    after = {path: path.read_bytes() for path in saved_run.glob("checkpoints/**/*.safetensors")}
    assert after == before


def test_data_are_what_they_contain_not_where_they_lie(text: list[str], saved_run: Path) -> None:
    data = Path(text[text.index("--data") + 1])
    moved = data.rename(data.with_name('moved "to" a\nlong\tname.txt'))
    train("--resume", str(saved_run), "--steps", "5", "--data", str(moved))
    train("--resume", str(saved_run), "--steps", "6")  # run.toml holds any name
    recipe = (saved_run / "run.toml").read_text()
    moved.write_text(moved.read_text().replace("times", "timed"))  # of the same length
    done = train("--resume", str(saved_run), "--steps", "7", check=False)
    assert done.returncode == 2
    assert "content of the data = " in done.stderr
    assert (saved_run / "run.toml").read_text() == recipe


def test_a_run_goes_on_in_its_own_folder(saved_run: Path, tmp_path: Path) -> None:
    more = ["--resume", str(saved_run), "--steps", "5", "--out"]
    done = train(*more, str(tmp_path / "other"), check=False)
    assert done.returncode == 2
    assert f"goes on in its own folder, {saved_run}" in done.stderr
    assert not (tmp_path / "other").exists()
    train(*more, f"{saved_run}/.")


def test_waits_may_be_without_limit(text: list[str]) -> None:
    for seconds in ("inf", "1e10"):
        done = train(*text, *f"--hosts 1 --per-host 2 --steps 2 --timeout-s {seconds}".split())
        assert done.stdout


def test_a_limit_of_open_files_is_named(text: list[str], tmp_path: Path) -> None:
    flags = "--hosts 8 --per-host 8 --global-batch 64 --steps 3 --checkpoint-every 3 --out".split()
    done = train(*text, *flags, str(tmp_path / "run"), check=False, open_files=100)
    assert done.returncode == 1
    assert "ulimit -n" in done.stderr


def test_checkpoint_of_another_run_is_refused(saved_run: Path) -> None:
    recipe = (saved_run / "run.toml").read_text()
    done = train("--resume", str(saved_run), "--topology", "ring", check=False)
    assert done.returncode == 2
    assert (saved_run / "run.toml").read_text() == recipe
    assert "topology" in done.stderr


def test_ctrl_c_leaves_with_the_last_checkpoint_intact(text: list[str], tmp_path: Path) -> None:
    out = tmp_path / "run"
    flags = "--steps 1000000 --checkpoint-every 5 --gamma 5 --compute-ms 20 --out".split()
    run = subprocess.Popen(
        [str(GOSSAMER), "train", *text, *flags, str(out)], stderr=subprocess.PIPE, text=True
    )
    wait_for(out / "checkpoints" / "latest", run)
    os.kill(run.pid, signal.SIGINT)
    _, said = run.communicate(timeout=60)
    assert run.returncode == 130
    assert "--resume" in said
    assert "interrupted" in said or "stopped" in said
    step = int((out / "checkpoints" / "latest").read_text().strip().removeprefix("step-"))
    assert len(checkpoint_bytes(out, step)) == 4
    trace = out / "trace.json.gz"
    assert trace.exists() or "interrupted" not in said
    if trace.exists():
        assert json.loads(gzip.decompress(trace.read_bytes()))["traceEvents"]
    resumed = train("--resume", str(out), "--steps", str(step + 2), "--json")
    assert json.loads(resumed.stdout)["steps"] == step + 2


def test_unequal_hosts_and_odd_sizes_train(text: list[str]) -> None:
    for hosts, per_host in (("3", "1,2,4"), ("1", "1"), ("5", "1"), ("3", "1")):
        text[text.index("--hosts") + 1] = hosts
        text[text.index("--per-host") + 1] = per_host
        summary = json.loads(train(*text, "--steps", "3", "--json").stdout)
        assert 0 < summary["val_loss"] < 6


def test_digits_are_learned_where_the_data_is() -> None:
    digits = ROOT.parent / "shared" / "data" / "mnist"
    if not digits.exists():
        pytest.skip(f"needs {digits}")
    flags = "--task images --model mlp --steps 400 --global-batch 64 --lr 3e-3 --json".split()
    summary = json.loads(train(*flags, "--data", str(digits)).stdout)
    assert summary["val_accuracy"] > 0.9
