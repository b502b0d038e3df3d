"""The `spillway` binary that tests may ask."""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))

import spillway.jax as sj
from spillway.jax import inspection


def find_spillway() -> str | None:
    """That of whoever runs the tests (see `sj.inspect`), or the newest that is built here."""
    try:
        return inspection.find_binary()
    except sj.UserError:
        built = [path for path in ROOT.glob("build/*/cli/spillway") if os.access(path, os.X_OK)]
        return str(max(built, key=lambda path: path.stat().st_mtime)) if built else None
