"""Functions of Python and of common libraries that write files or run shell commands, for `python_writes`."""

from __future__ import annotations

OPENERS = frozenset((
    *("open", "io.open", "codecs.open", "gzip.open", "bz2.open", "lzma.open", "tarfile.open", "zipfile.ZipFile"),
    "tarfile.TarFile",
))  # fmt: skip
"""Functions that take a path and then a mode."""
WRITES_SECOND = frozenset(
    f"{module}.{name}"
    for module, names in {
        "shutil": ("copy", "copy2", "copyfile", "move", "copytree"),
        "os": ("rename", "replace", "renames", "link", "symlink"),
    }.items()
    for name in names
)
"""Functions whose second argument is the path written."""
SECOND_NAMES = ("dst", "target")
WRITES_FIRST = frozenset((
    *("os.mkdir", "os.makedirs", "os.mknod", "os.mkfifo", "os.truncate", "sqlite3.connect", "shelve.open", "dbm.open"),
    *("numpy.save", "numpy.savez", "numpy.savez_compressed", "numpy.savetxt", "joblib.dump"),
    *("matplotlib.pyplot.savefig", "urllib.request.urlretrieve"),
))  # fmt: skip
PATH_METHODS = frozenset(("write_text", "write_bytes", "touch", "mkdir", "symlink_to", "hardlink_to"))
"""Methods of a `Path` that write to it."""
PATH_MOVES = frozenset(("rename", "replace"))
SAVERS = frozenset((
    *("to_csv", "to_json", "to_excel", "to_parquet", "to_html", "to_pickle", "to_feather", "to_hdf", "to_markdown"),
    *("savefig", "save", "tofile"),
))  # fmt: skip
"""Methods of tables, figures and arrays whose first argument is the path written."""
SHELLS = frozenset((
    *("os.system", "os.popen", "subprocess.getoutput", "subprocess.getstatusoutput"),
    *("subprocess.run", "subprocess.call", "subprocess.check_call", "subprocess.check_output", "subprocess.Popen"),
))  # fmt: skip
OS_WRITE_FLAGS = ("O_WRONLY", "O_RDWR", "O_CREAT", "O_APPEND", "O_TRUNC")
URLRETRIEVE = "urllib.request.urlretrieve"
