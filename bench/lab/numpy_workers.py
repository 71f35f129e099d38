"""The same run as users would write it with NumPy: vectorised over the workers."""

import time

import numpy as np

STEP_SIZE, HALVED_EVERY = 0.2, 1000


def make_data(workers: int, samples: int, dimension: int) -> np.ndarray:
    """y·a of each sample, (workers, samples, dimension): every worker has a model of its own."""
    rng = np.random.default_rng(1)
    models = rng.standard_normal((workers, dimension))
    models /= np.linalg.norm(models, axis=1, keepdims=True)
    features = rng.standard_normal((workers, samples, dimension))
    margins = np.einsum("nmd,nd->nm", features, models)
    labels = np.where(rng.random(margins.shape) <= 1 / (1 + np.exp(-margins)), 1.0, -1.0)
    return features * labels[..., None]


def minimiser(data: np.ndarray) -> np.ndarray:
    """Newton's method on all samples."""
    rows = data.reshape(-1, data.shape[-1])
    x = np.zeros(rows.shape[1])
    for _ in range(20):
        share = 1 / (1 + np.exp(rows @ x))
        gradient = -(share @ rows) / len(rows)
        hessian = (rows * (share * (1 - share))[:, None]).T @ rows / len(rows)
        x -= np.linalg.solve(hessian, gradient)
    return x


def roll_ring(x: np.ndarray) -> np.ndarray:
    """W x of the ring with weights 1/3, by shifted copies."""
    return (x + np.roll(x, 1, axis=0) + np.roll(x, -1, axis=0)) / 3


def dense_ring(workers: int) -> np.ndarray:
    eye = np.eye(workers)
    return (eye + np.roll(eye, 1, axis=0) + np.roll(eye, -1, axis=0)) / 3


def timed_run(data: np.ndarray, best: np.ndarray, steps: int, mixing: str) -> tuple[float, float]:
    """(CPU seconds of the steps, mean squared error at the end) of D-SGD, one sample per step."""
    workers, samples, dimension = data.shape
    everyone = np.arange(workers)
    w = dense_ring(workers)
    begin = time.process_time()
    draws = np.random.default_rng(2).integers(samples, size=(steps, workers))
    x = np.zeros((workers, dimension))
    for step in range(steps):
        rows = data[everyone, draws[step]]
        slopes = 1 / (1 + np.exp(np.einsum("nd,nd->n", rows, x)))
        lr = STEP_SIZE * 0.5 ** (step // HALVED_EVERY)
        x += (lr * slopes)[:, None] * rows
        x = w @ x if mixing == "dense" else roll_ring(x)
    seconds = time.process_time() - begin
    return seconds, float(((x - best) ** 2).sum(axis=1).mean())
