"""Where our code lies: in a checkout, or in the directory where packages are installed. Decides nothing else."""

from __future__ import annotations

from pathlib import Path

CODE = Path(__file__).resolve().parent.parent.parent
"""The directory of plans/, runtime/, ... and worker.py."""
IS_CHECKOUT = (CODE / "plansurvive").is_dir()
"""Whether the packages lie beside plansurvive/, which links to them, and not in it."""
IMPORTED_FROM = CODE if IS_CHECKOUT else CODE.parent
"""The directory of plansurvive/; of what is installed, that of our dependencies as well."""
