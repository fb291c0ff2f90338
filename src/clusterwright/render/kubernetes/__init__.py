"""Acceptance as plain Jobs of Kubernetes: no operator, nothing that stays in the cluster."""
