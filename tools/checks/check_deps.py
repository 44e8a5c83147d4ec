#!/usr/bin/env python3
"""Holds the includes of include/ and src/ against the NEEDS lists in src/*/CMakeLists.txt.

    tools/checks/check_deps.py [--self-test] [ROOT]

The rules, each violation one line (file:line: what, rule):
  - a folder includes only itself and what it NEEDS, directly or through others; NEEDS has no cycle;
  - a private header (below src/) stays within its top folder;
  - a folder without TORCH includes no libtorch and needs no folder that does;
  - c10d is included in src/comm/c10d only, <torch/torch.h> and <torch/types.h> nowhere;
  - a public header takes nothing of libtorch but <ATen/core/Tensor.h>;
  - every .cpp below src/ is named in its folder's CMakeLists.txt.
"""

import pathlib
import re
import sys
import tempfile

COMPONENT = re.compile(r"octavo_component\(\s*([\w]+)([^)]*)\)")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
LIBTORCH = re.compile(r"^(ATen|torch|c10|caffe2)/")
KEYWORDS = {"TORCH", "NEEDS", "SOURCES", "LIBRARIES"}


class Component:
    def __init__(self, name, folder, arguments):
        self.name, self.folder = name, folder
        self.torch, self.needs = False, []
        keyword = None
        for word in arguments.split():
            if word in KEYWORDS:
                keyword = word
                self.torch = self.torch or word == "TORCH"
            elif keyword == "NEEDS":
                self.needs.append(word)


def read_components(root):
    """Folder below src/ ("comm/threads") -> its Component."""
    components = {}
    for cmake in sorted(root.glob("src/**/CMakeLists.txt")):
        text = re.sub(r"#[^\n]*", "", cmake.read_text())
        for name, arguments in COMPONENT.findall(text):
            folder = cmake.parent.relative_to(root / "src").as_posix()
            components[folder] = Component(name, folder, arguments)
    return components


def owner(path, folders):
    """The deepest of `folders` that `path` lies in; None if there is none."""
    fitting = [folder for folder in folders if path.startswith(folder + "/")]
    return max(fitting, key=len, default=None)


def closure(component, by_name):
    """Names of everything that `component` may include from, itself included."""
    reached, waiting = set(), [component.name]
    while waiting:
        name = waiting.pop()
        if name not in reached and name in by_name:
            reached.add(name)
            waiting += by_name[name].needs
    return reached


def check_needs(components):
    by_name = {component.name: component for component in components.values()}
    for component in components.values():
        where = f"src/{component.folder}/CMakeLists.txt:1"
        for name in component.needs:
            if name not in by_name:
                yield f"{where}: NEEDS {name}, which is no component"
            elif component.name in closure(by_name[name], by_name):
                yield f"{where}: NEEDS {name}, which needs {component.name} itself; needs must go one way"
            elif by_name[name].torch and not component.torch:
                yield f"{where}: NEEDS {name}, which needs libtorch; {component.name} is torch-free"


def source_files(root):
    for top in ("include/octavo", "src"):
        for path in sorted((root / top).glob("**/*")):
            if path.suffix in (".h", ".cpp") and path.is_file():
                yield path


def check_include(path, public, quote, header, component, components, allowed):
    """Why `component`'s file may not include `header`; None if it may."""
    if header in ("torch/torch.h", "torch/types.h"):
        return "costs half a minute per file; include what is used"
    if "/c10d/" in header and LIBTORCH.match(header) and not path.startswith("src/comm/c10d/"):
        return "c10d is included in src/comm/c10d only"
    if LIBTORCH.match(header):
        if not component.torch:
            return f"{component.folder} is torch-free"
        if public and header != "ATen/core/Tensor.h":
            return "a public header takes nothing of libtorch but <ATen/core/Tensor.h>"
        return None
    if header.startswith("octavo/"):
        folder = owner(header.removeprefix("octavo/"), components)
    elif quote == '"':
        folder = owner(header, components)
    else:
        return None
    if folder is None:
        return None if quote == "<" else "no folder of octavo has this header"
    if components[folder].name not in allowed:
        return f"{component.folder} does not need {folder}"
    if not header.startswith("octavo/") and header.split("/")[0] != component.folder.split("/")[0]:
        return f"a private header of {folder}"
    return None


def check_includes(root, components):
    by_name = {component.name: component for component in components.values()}
    for file in source_files(root):
        path = file.relative_to(root).as_posix()
        public = path.startswith("include/")
        inside = path.removeprefix("include/octavo/").removeprefix("src/")
        folder = owner(inside, components)
        if folder is None:
            yield f"{path}:1: belongs to no component; give its folder a CMakeLists.txt with octavo_component"
            continue
        component = components[folder]
        listed = (root / "src" / folder / "CMakeLists.txt").read_text().split()
        if file.suffix == ".cpp" and inside.removeprefix(folder + "/") not in {word.strip("()") for word in listed}:
            yield f"{path}:1: is not named in src/{folder}/CMakeLists.txt"
        allowed = closure(component, by_name)
        for number, line in enumerate(file.read_text().splitlines(), 1):
            if match := INCLUDE.match(line):
                reason = check_include(path, public, match[1], match[2], component, components, allowed)
                if reason:
                    yield f"{path}:{number}: includes {match[2]}: {reason}"


def violations(root):
    components = read_components(root)
    return [*check_needs(components), *check_includes(root, components)]


def self_test():
    files = {
        "src/base/CMakeLists.txt": "octavo_component(base SOURCES a.cpp)",
        "src/base/a.cpp": '#include "octavo/base/a.h"\n#include "base/detail.h"\n#include <vector>',
        "src/base/detail.h": "",
        "include/octavo/base/a.h": '#include "octavo/mesh/m.h"\n#include <ATen/core/Tensor.h>',
        "src/mesh/CMakeLists.txt": "octavo_component(mesh NEEDS base # comment\n SOURCES m.cpp)",
        "src/mesh/m.cpp": '#include "octavo/base/a.h"\n#include "base/detail.h"',
        "src/mesh/unlisted.cpp": "",
        "include/octavo/mesh/m.h": "",
        "src/comm/CMakeLists.txt": "octavo_component(comm TORCH NEEDS mesh SOURCES c.cpp)",
        "src/comm/c.cpp": '#include "octavo/base/a.h"\n#include <ATen/ATen.h>\n'
        "#include <torch/csrc/distributed/c10d/Work.hpp>\n#include <torch/torch.h>",
        "include/octavo/comm/c.h": "#include <ATen/core/Tensor.h>\n#include <ATen/ATen.h>",
        "src/plan/CMakeLists.txt": "octavo_component(plan NEEDS comm plan nothing SOURCES)",
        "include/octavo/lost/l.h": "",
    }
    expected = {
        "include/octavo/base/a.h:1: includes octavo/mesh/m.h: base does not need mesh",
        "include/octavo/base/a.h:2: includes ATen/core/Tensor.h: base is torch-free",
        "src/mesh/m.cpp:2: includes base/detail.h: a private header of base",
        "src/mesh/unlisted.cpp:1: is not named in src/mesh/CMakeLists.txt",
        "src/comm/c.cpp:3: includes torch/csrc/distributed/c10d/Work.hpp: c10d is included in src/comm/c10d only",
        "src/comm/c.cpp:4: includes torch/torch.h: costs half a minute per file; include what is used",
        "include/octavo/comm/c.h:2: includes ATen/ATen.h: "
        "a public header takes nothing of libtorch but <ATen/core/Tensor.h>",
        "src/plan/CMakeLists.txt:1: NEEDS comm, which needs libtorch; plan is torch-free",
        "src/plan/CMakeLists.txt:1: NEEDS plan, which needs plan itself; needs must go one way",
        "src/plan/CMakeLists.txt:1: NEEDS nothing, which is no component",
        "include/octavo/lost/l.h:1: belongs to no component; "
        "give its folder a CMakeLists.txt with octavo_component",
    }
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, text in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        found = violations(root)
    if sorted(found) != sorted(expected):
        sys.exit("check_deps.py: the self-test failed; difference:\n" + "\n".join(sorted(set(found) ^ expected)))


def main():
    arguments = sys.argv[1:]
    if "--self-test" in arguments:
        self_test()
        arguments.remove("--self-test")
    root = pathlib.Path(arguments[0] if arguments else pathlib.Path(__file__).resolve().parents[2])
    found = violations(root)
    print("\n".join(found), end="\n" if found else "")
    components = read_components(root)
    if not components:
        sys.exit(f"check_deps: {root} has no src/*/CMakeLists.txt; give the repository's root")
    print(f"check_deps: {len(components)} components, {len(found)} violations")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
