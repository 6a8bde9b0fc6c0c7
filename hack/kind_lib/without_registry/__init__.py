"""For machines that reach Debian's and Go's packages but no container registry, and for nothing else.

What others pull, these put together: a node image for kind, a base for the operator's image, and an image with a shell.
Debian packages are the file systems (`debian`), Go modules the programs. Everything is kept in the cache by what it was made
from. Where a registry is reachable, nothing in here runs.
"""
