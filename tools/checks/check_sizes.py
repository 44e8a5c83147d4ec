#!/usr/bin/env python3
"""Keeps files small enough to read.

    tools/checks/check_sizes.py [ROOT]

Public headers have at most 150 lines, sources at most 500, tests/data at most 20 MB. A file that must be longer stands in
tools/checks/size_exceptions.txt with a reason; an exception that is not needed any more is a violation too.
"""

import pathlib
import sys

MAX_HEADER_LINES = 150
MAX_SOURCE_LINES = 500
MAX_TEST_DATA_BYTES = 20_000_000
SOURCE_FOLDERS = ("include", "src", "tests", "bench", "tools", "cmake")
SOURCE_ENDINGS = (".h", ".cpp", ".py", ".cmake", ".txt")


def read_exceptions(root):
    """Path -> reason; one `path: reason` a line, # begins a comment."""
    exceptions = {}
    for line in (root / "tools/checks/size_exceptions.txt").read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            path, _, reason = line.partition(":")
            if not reason.strip():
                sys.exit(f"tools/checks/size_exceptions.txt: '{line}' gives no reason; write 'path: reason'")
            exceptions[path.strip()] = reason.strip()
    return exceptions


def source_files(root):
    for folder in SOURCE_FOLDERS:
        for path in sorted((root / folder).glob("**/*")):
            name = path.relative_to(root).as_posix()
            if path.is_file() and path.suffix in SOURCE_ENDINGS and not name.startswith("tests/data/"):
                yield name


def violations(root):
    exceptions = read_exceptions(root)
    for name in source_files(root):
        lines = len((root / name).read_text().splitlines())
        limit = MAX_HEADER_LINES if name.startswith("include/") else MAX_SOURCE_LINES
        reason = exceptions.pop(name, None)
        if lines > limit and reason is None:
            yield f"{name}: {lines} lines, at most {limit}; split it, or give a reason in tools/checks/size_exceptions.txt"
        if lines <= limit and reason is not None:
            yield f"{name}: {lines} lines need no exception; take it out of tools/checks/size_exceptions.txt"
    for name in exceptions:
        yield f"{name}: in tools/checks/size_exceptions.txt, but there is no such source"
    data_bytes = sum(path.stat().st_size for path in (root / "tests/data").glob("**/*") if path.is_file())
    if data_bytes > MAX_TEST_DATA_BYTES:
        yield f"tests/data: {data_bytes} bytes, at most {MAX_TEST_DATA_BYTES}"


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[2])
    found = list(violations(root))
    print("\n".join(found), end="\n" if found else "")
    print(f"check_sizes: {len(list(source_files(root)))} files, {len(found)} violations")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
