"""What a plan says of each name, in whichever of its three forms it comes. Needs no JAX.

choices       {"query_proj": "offload", ...}
an answer     {"schema": "spillway.plan/1", "best": {"policy": {"query_proj": "offload", ...}}}
a plan file   {"policy": {"query_proj": "offload", ...}, ...}
"""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from .errors import WRONG_INPUT, UserError

CHOICES = ("keep", "offload", "recompute")


@dataclass(frozen=True)
class ReadPlan:
    """Name -> choice, and whether the plan fits its budget, if it says so."""

    choices: dict[str, str]
    fits: bool = True


def read_plan(plan: Mapping | str | os.PathLike) -> ReadPlan:
    """A plan, or a file that holds one as JSON or YAML (the latter needs PyYAML).

    Raises UserError, naming the file, if it is none.
    """
    if isinstance(plan, Mapping):
        return plan_from(plan, "the plan")
    if not isinstance(plan, (str, os.PathLike)):
        raise UserError(f"a {type(plan).__name__} is no plan: give a dict or a file", WRONG_INPUT)
    return plan_from(_read_file(Path(plan)), str(plan))


def plan_from(document: object, where: str) -> ReadPlan:
    """A parsed plan. Raises UserError; the message starts with `where`."""
    if not isinstance(document, Mapping):
        raise UserError(f"{where} holds no plan: it needs a mapping with 'policy'", WRONG_INPUT)
    if "best" not in document and "policy" not in document:
        return ReadPlan(_choices(document, where))
    case = document
    if "best" in document:
        case = document["best"]
        if not isinstance(case, Mapping) or "policy" not in case:
            raise UserError(f"{where} has no best policy: nothing was planned", WRONG_INPUT)
    choices = _choices(case["policy"], where)
    unnamed = [name for name in choices if re.fullmatch(r"[ru]\d+", name)]
    if unnamed:
        raise UserError(
            f"{where} calls tensors {', '.join(unnamed)}, which no step knows: it was made without "
            "names. Give spillway plan the --names that names() or dump() wrote",
            WRONG_INPUT,
        )
    return ReadPlan(choices, document.get("fits", case.get("fits", True)) is not False)


def check_choice(name: str, choice: object, where: str = "") -> None:
    """Raises UserError if a name is given anything but keep, offload or recompute."""
    if choice not in CHOICES:
        start = f"{where}: " if where else ""
        raise UserError(
            f"{start}'{choice}' is no choice for '{name}': say {', '.join(CHOICES[:-1])} "
            f"or {CHOICES[-1]}"
        )


def _choices(policy: object, where: str) -> dict[str, str]:
    if not isinstance(policy, Mapping) or not all(isinstance(name, str) for name in policy):
        raise UserError(
            f"{where}: 'policy' needs names, each with {', '.join(CHOICES[:-1])} or {CHOICES[-1]}",
            WRONG_INPUT,
        )
    for name, choice in policy.items():
        check_choice(name, choice, where)
    return dict(policy)


def _read_file(path: Path) -> object:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path} cannot be read: {error}", WRONG_INPUT) from None
    try:
        if text.lstrip().startswith("{"):
            return json.loads(text)
        import yaml

        return yaml.load(text, Loader=_strict_loader(yaml))
    except ImportError:
        raise UserError("reading YAML needs PyYAML: pip install PyYAML", WRONG_INPUT) from None
    except ValueError as error:
        raise UserError(f"{path} is not JSON: {error}", WRONG_INPUT) from None
    except yaml.YAMLError as error:
        raise UserError(f"{path} is not YAML: {error}", WRONG_INPUT) from None


def _strict_loader(yaml):
    """PyYAML's safe loader, and a key given twice is an error: PyYAML would take the last."""

    class StrictLoader(yaml.SafeLoader):
        def construct_mapping(self, node, deep=False):
            seen = set()
            for key, _ in node.value:
                if isinstance(key, yaml.ScalarNode):
                    if key.value in seen:
                        raise yaml.constructor.ConstructorError(
                            None, None, f"'{key.value}' is given twice", key.start_mark
                        )
                    seen.add(key.value)
            return super().construct_mapping(node, deep)

    return StrictLoader
