"""A kind cluster on this machine: kubelet, containerd, containers; and this clone's operator in it.

Standard library only, on top of `controlplane_lib`. Read `cluster` first (what is made, and what `down` takes away), then
`daemon` (Docker's) and `images`. `without_registry` is for machines that reach no container registry, and only they use it.
"""
