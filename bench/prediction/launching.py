"""One configuration: what `gossamer simulate` says, and what engines do (step_times.cpp)."""

import json
import math
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from configurations import Scene, cluster_toml, workload_toml

WARM_UP = 8
FEWEST, MOST = 16, 60  # steps
SEED = 1
LIMIT_S = 120


@dataclass(frozen=True)
class Programs:
    """Where they were built."""

    folder: Path

    @property
    def gossamer(self) -> Path:
        return self.folder / "gossamer"

    @property
    def step_times(self) -> Path:
        return self.folder / "step_times"

    def missing(self) -> str:
        absent = [path for path in (self.gossamer, self.step_times) if not path.exists()]
        return ", ".join(str(path) for path in absent)


def call(words: list[str]) -> dict[str, Any]:
    """Its JSON. Raises RuntimeError with what it complains of."""
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=LIMIT_S)
    if done.returncode != 0:
        raise RuntimeError(f"[prediction] {' '.join(words)}: {done.stderr.strip()}")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def steps_for(step_s: float, seconds: float) -> int:
    return max(FEWEST, min(MOST, round(seconds / step_s)))


@dataclass
class Bench:
    """Asks the programs about scenes; a measured run lasts about `seconds`."""

    programs: Programs
    seconds: float

    def _with_files(self, scene: Scene, words: list[str], steps_ratio: float = 0) -> Any:
        with tempfile.TemporaryDirectory() as folder:
            cluster, workload = Path(folder) / "cluster.toml", Path(folder) / "workload.toml"
            cluster.write_text(cluster_toml(scene))
            workload.write_text(workload_toml(scene, steps_ratio))
            places = {"CLUSTER": str(cluster), "WORKLOAD": str(workload)}
            return call([places.get(word, word) for word in words])

    def simulate(self, scene: Scene, method: str, steps: int) -> tuple[float, float]:
        """Seconds per step by the simulator, and by the recursion of plan (NaN: it has none)."""
        words = [str(self.programs.gossamer), "simulate", method, "--json"]
        words += ["--cluster", "CLUSTER", "--workload", "WORKLOAD", "--seed", str(SEED)]
        words += ["--steps", str(steps), "--warm-up", str(WARM_UP)]
        answer = self._with_files(scene, words)["methods"][0]
        model = answer["model_step_s"]
        return float(answer["step_s"]), math.nan if model is None else float(model)

    def predict(self, scene: Scene, method: str) -> tuple[int, float, float]:
        """The steps that are to be measured, and the mean of the same ones as predicted: simulated,
        and by the recursion."""
        steps = steps_for(self.simulate(scene, method, FEWEST)[0], self.seconds)
        return steps, *self.simulate(scene, method, steps)

    def plan(self, scene: Scene, steps_ratio: float) -> dict[str, Any]:
        words = [str(self.programs.gossamer), "plan", "--json"]
        words += ["--cluster", "CLUSTER", "--workload", "WORKLOAD"]
        answer: dict[str, Any] = self._with_files(scene, words, steps_ratio)
        return answer

    def measure(self, scene: Scene, method: str, steps: int) -> dict[str, Any]:
        words = [str(self.programs.step_times), "CLUSTER", "WORKLOAD", method]
        words += [str(steps), str(WARM_UP), str(SEED)]
        row: dict[str, Any] = self._with_files(scene, words)
        return row
