"""Bytes for a reader."""


def size_text(size: int) -> str:
    """As "512 B", "1.50 KiB", "96.00 GiB"."""
    for unit, name in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if size >= unit:
            return f"{size / unit:.2f} {name}"
    return f"{size} B"
