"""A real control plane on this machine: etcd, kube-apiserver, controllers and kwok nodes.

Standard library only: it runs before the virtual environment exists. Read `plane` first (what a control plane is and
how long it lives), then `cluster` (how one is started) and `binaries` (where its programs come from).
"""
