"""workflow-schedules: schedules as Kubernetes resources; every decision recorded, no occurrence run twice."""
