"""``python -m workflow_schedules`` runs the operator."""

from workflow_schedules.app.main import main

main()
