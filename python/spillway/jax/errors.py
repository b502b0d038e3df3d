"""What the user did wrong, as opposed to a bug of ours."""

WRONG_COMMAND_LINE = 2
WRONG_INPUT = 3


class UserError(Exception):
    """A mistake that the user can mend. Its text is one complete message.

    `exit_code` is what a script ends with: 2 for the command line, 3 for a file or the machine,
    the codes that the `spillway` binary uses too.
    """

    def __init__(self, message: str, exit_code: int = WRONG_COMMAND_LINE):
        super().__init__(message)
        self.exit_code = exit_code


def import_jax():
    """The `jax` module, or a UserError that says how to install it."""
    try:
        import jax
    except ImportError as error:
        raise UserError(f"this needs JAX ({error}): pip install jax", WRONG_INPUT) from None
    return jax
