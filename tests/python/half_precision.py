"""Four workers train in half precision and in float32: how far apart they end, and their loss.

usage: python tests/python/half_precision.py [--short]

GOSSAMER_PYTHON_PATH names another build of the package, to compare with.
"""

import argparse

import gossip_ranks

WORKERS = [1, 1, 1, 1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true", help="as in the tests")
    scenario = "half_training" if parser.parse_args().short else "half_training_long"
    ranks = gossip_ranks.run([scenario], WORKERS, timeout_s=1200)
    for name, found in gossip_ranks.results(ranks, scenario)[0].items():
        how = "fused" if found["is_fused"] else "own step"
        print(f"{name:20} {how:9} apart {found['apart']:.3e}  loss {found['loss']:.5f}")


if __name__ == "__main__":
    main()
