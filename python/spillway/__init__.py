"""Spillway's Python side: `spillway.jax`. The planner itself is the `spillway` binary."""
