"""Spillway's Python side. `spillway.jax` is all there is of it; the planner is the `spillway` binary."""
