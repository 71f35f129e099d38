"""The process group to gossip in."""

from __future__ import annotations

import torch.distributed as dist


def group_of(
    group: dist.ProcessGroup | dist.device_mesh.DeviceMesh | None,
) -> dist.ProcessGroup | None:
    """The process group of a mesh with one dimension; any process group, and None, as they are.

    Raises ValueError for a mesh of several dimensions, and for what is neither.
    """
    if group is None or isinstance(group, dist.ProcessGroup):
        return group
    if group == dist.GroupMember.NON_GROUP_MEMBER:
        raise ValueError("[Gossip] this rank is not in the group; make Gossip only on its members")
    if not isinstance(group, dist.device_mesh.DeviceMesh):
        raise ValueError(
            "[Gossip] group must be a process group or a device mesh, got "
            f"{group!r}; make one on every rank with torch.distributed.new_group(ranks)"
        )
    if group.ndim > 1:
        names = group.mesh_dim_names
        remedy = (
            f"pass mesh[{names[0]!r}] to gossip along '{names[0]}'"
            if names
            else 'name them with init_device_mesh(..., mesh_dim_names=("gossip", "inner")) and '
            'pass mesh["gossip"]'
        )
        raise ValueError(
            "[Gossip] the mesh does not say which of its dimensions gossips, got "
            f"{names or 'no names'} of sizes {tuple(group.shape)}; {remedy}"
        )
    if group.get_coordinate() is None:
        raise ValueError("[Gossip] this rank is not in the mesh; make Gossip only on its members")
    return group.get_group()
