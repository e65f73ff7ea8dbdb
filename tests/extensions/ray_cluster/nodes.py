"""A Ray cluster of several nodes on this machine, which a test talks to over standard input.

python nodes.py PORT FOLDER NODES
"""

import sys
from pathlib import Path

from ray.cluster_utils import Cluster


def main(port: int, folder: str, count: int) -> None:
    """Start the head, which plays nothing, and the nodes; remove one for each line of input."""
    head = {"num_cpus": 0, "ray_client_server_port": port, "include_dashboard": False, "temp_dir": folder}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    nodes = [cluster.add_node(num_cpus=1, include_dashboard=False) for _ in range(count)]
    cluster.wait_for_nodes()
    Path(folder, "ready").touch()
    for _ in sys.stdin:
        cluster.remove_node(nodes.pop(), allow_graceful=False)
    cluster.shutdown()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
