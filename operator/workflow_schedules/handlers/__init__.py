"""The edge towards kopf and the kubelet: handlers that feed the cache and wake, and probes. No rules, no writes."""
