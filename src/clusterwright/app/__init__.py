"""Use-cases: load → decide → apply. Only here are concrete adapters picked (`wiring`, `agent`, `controlplane`).

No rule, no formula and no rendering lives here; those are called.
"""
