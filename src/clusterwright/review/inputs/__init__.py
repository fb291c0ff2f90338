"""Readiness: what each of the nine areas must say. Only presence is asked here; whether it is right is asked beside."""
