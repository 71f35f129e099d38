"""Runs a script on a Ray of this machine alone: python start_on_ray.py WORKERS FOLDER SCRIPT...

Ray by itself would listen on the machine's outer address.
"""

import runpy
import sys
from pathlib import Path

import ray

workers, folder, *sys.argv = sys.argv[1:]
sys.path.insert(0, str(Path(sys.argv[0]).parent))
ray.init(
    num_cpus=int(workers),
    include_dashboard=False,
    _node_ip_address="127.0.0.1",
    _temp_dir=folder,
)
runpy.run_path(sys.argv[0], run_name="__main__")
