"""What a run knows of its files after a move to another host."""

from __future__ import annotations

from collections.abc import Mapping

from plans.file_stamps import Stamp


def moved_stamps(stamps: Mapping[str, Stamp]) -> dict[str, Stamp]:
    """The stamps that still mean something: a large file's names its inode, which is another one now.

    The checkpoint has the content that the run saw last; a large file counts as one that it has not seen.
    """
    return {path: stamp for path, stamp in stamps.items() if not stamp.identity}
