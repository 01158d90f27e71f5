"""What is in the packages: descriptions made from Cargo.toml, the README and the templates beside this file, and files.

Files are dictionaries from the path inside a package to a `File`.
"""

import dataclasses
import gzip
import json
import pathlib
import subprocess
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
COMPLETIONS = {
    "bash": "share/bash-completion/completions/termgate",
    "fish": "share/fish/vendor_completions.d/termgate.fish",
}
# Only Debian has a place of its own for the completions of packages.
ZSH = {"/usr": "share/zsh/vendor-completions/_termgate", "/usr/local": "share/zsh/site-functions/_termgate"}
CPUS = {"x86_64": "x64", "aarch64": "arm64"}
LICENCES = ("LICENSE-MIT", "LICENSE-APACHE")
# How the files begin in which crates keep what their licences ask to be handed on.
NOTICES = ("LICEN", "COPY", "NOTICE", "UNLIC")
# The licences of what crates have besides their code.
CONTAINED = {"dejavu": ["assets/dejavu-fonts-ttf-2.37/LICENSE"]}


@dataclasses.dataclass
class File:
    content: bytes
    mode: int = 0o644


@dataclasses.dataclass
class About:
    """What every package says of itself."""

    version: str
    description: str
    licence: str
    keywords: list
    # The server's name in registries, which looks for it in the packages to know that they belong to it.
    registry_name: str
    # Markdown: what termgate is and which package to take.
    text: str
    # The notices of all that is linked into the binaries.
    notices: str
    # Those of Rust's library, as its toolchain has them.
    rust_notices: bytes


def about(root: pathlib.Path, metadata: dict, sysroot: pathlib.Path) -> About:
    package = next(package for package in metadata["packages"] if package["id"] == metadata["resolve"]["root"])
    if not all(part.isdecimal() for part in package["version"].split(".")):
        raise SystemExit(f"version {package['version']}: .deb and wheel would each write a pre-release differently")
    name = template("server.json")["name"]
    return About(
        version=package["version"],
        description=package["description"],
        licence=package["license"],
        keywords=package["keywords"],
        registry_name=name,
        text=introduction((root / "README.md").read_text()) + f"\n<!-- mcp-name: {name} -->\n",
        notices=notices(metadata),
        rust_notices=(sysroot / "share/doc/rust/COPYRIGHT-library.html").read_bytes(),
    )


def introduction(readme: str) -> str:
    """The README's title, first paragraph and how to install."""
    title, paragraph = readme.split("\n\n")[:2]
    section = readme.partition("\n## Install\n")[2].partition("\n## ")[0]
    return f"{title}\n\n{paragraph}\n\n## Install\n{section}"


def notices(metadata: dict) -> str:
    """The notices of the crates in the binary, each text once below the crates that have it."""
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    reached, open_ids = set(), [metadata["resolve"]["root"]]
    while open_ids:
        one = open_ids.pop()
        if one not in reached:
            reached.add(one)
            dependencies = nodes[one]["deps"]
            open_ids += [it["pkg"] for it in dependencies if any(kind["kind"] is None for kind in it["dep_kinds"])]
    linked = sorted((packages[one] for one in reached), key=lambda package: (package["name"], package["version"]))
    owners: dict = {}
    for package in linked:
        folder = pathlib.Path(package["manifest_path"]).parent
        found = sorted(path for path in folder.iterdir() if path.is_file() and path.name.upper().startswith(NOTICES))
        # Where there is a choice of licences, the shortest will do.
        kept = [path for path in found if "MIT" in path.name.upper()] or found
        for path in kept + [folder / name for name in CONTAINED.get(package["name"], [])]:
            text = "\n".join(line.rstrip() for line in path.read_text().strip().splitlines())
            owners.setdefault(text, []).append(f"{package['name']} {package['version']} ({package['license']})")
    head = (HERE / "notices").read_text()
    return head + "".join(f"\n{'-' * 80}\n{', '.join(names)}\n\n{text}\n" for text, names in owners.items())


def template(name: str) -> dict:
    return json.loads((HERE / name).read_text())


def as_json(value: dict) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def server_json(about: About) -> str:
    server = template("server.json") | {"description": about.description, "version": about.version}
    server["packages"] = [package | {"version": about.version} for package in server["packages"]]
    return as_json(server)


def package_json(about: About, machines: list) -> str:
    own = {"version": about.version, "description": about.description, "license": about.licence}
    own |= {"keywords": about.keywords, "mcpName": about.registry_name, "cpu": [CPUS[machine] for machine in machines]}
    return as_json(template("package.json") | own)


def wheel_metadata(about: About) -> str:
    lines = [
        "Metadata-Version: 2.4",
        "Name: termgate",
        f"Version: {about.version}",
        f"Summary: {about.description}",
        f"License-Expression: {about.licence}",
        *(f"License-File: {name}" for name in (*LICENCES, "notices.txt", "notices-rust.html")),
        f"Keywords: {','.join(about.keywords)}",
        "Description-Content-Type: text/markdown",
    ]
    return "\n".join(lines) + "\n\n" + about.text


def licences(root: pathlib.Path, about: About) -> dict:
    own = {name: File((root / name).read_bytes()) for name in LICENCES}
    return own | {"notices.txt": File(about.notices.encode()), "notices-rust.html": File(about.rust_notices)}


def tree(root: pathlib.Path, about: About, binary: pathlib.Path, guide: pathlib.Path, prefix: str) -> dict:
    """What belongs below `prefix` of a system. `guide` is a binary that runs on this machine."""
    files = {"bin/termgate": File(binary.read_bytes(), 0o755)}
    with tempfile.TemporaryDirectory() as directory:
        subprocess.run([guide, "man", "--out", directory], check=True, stderr=subprocess.DEVNULL)
        for page in sorted(pathlib.Path(directory).iterdir()):
            files[f"share/man/man1/{page.name}.gz"] = File(gzip.compress(page.read_bytes(), mtime=0))
    for shell, place in (COMPLETIONS | {"zsh": ZSH[prefix]}).items():
        # Called by its bare name, it writes a script that calls that name.
        command = ["termgate", "completions", shell]
        script = subprocess.run(command, executable=guide, check=True, stdout=subprocess.PIPE).stdout
        # zsh reads the script when it first completes: there it must also do so.
        files[place] = File(script + (b'"$_comps[termgate]" "$@"\n' if shell == "zsh" else b""))
    for unit in ("termgate.service", "termgate.socket"):
        text = (root / "config" / unit).read_text()
        files[f"lib/systemd/user/{unit}"] = File(unit_text(text, prefix).encode())
    documents = licences(root, about) | {"CHANGELOG.md": File((root / "CHANGELOG.md").read_bytes())}
    files |= {f"share/doc/termgate/{name}": file for name, file in documents.items()}
    return dict(sorted(files.items()))


def unit_text(text: str, prefix: str) -> str:
    """A unit of the project for a program below `prefix`."""
    lines = []
    for line in text.splitlines():
        if line.startswith("# The path that `cargo install` uses."):
            continue
        lines.append(f"ExecStart={prefix}/bin/termgate serve" if line.startswith("ExecStart=") else line)
    return "\n".join(lines) + "\n"


def wheel_files(root: pathlib.Path, about: About, binary: pathlib.Path) -> dict:
    information = f"termgate-{about.version}.dist-info"
    files = {
        # Installers copy scripts into the directory of programs and make them executable.
        f"termgate-{about.version}.data/scripts/termgate": File(binary.read_bytes(), 0o755),
        f"{information}/METADATA": File(wheel_metadata(about).encode()),
    }
    return files | {f"{information}/licenses/{name}": file for name, file in licences(root, about).items()}


def npm_files(root: pathlib.Path, about: About, binaries: dict) -> dict:
    files = {
        "package.json": File(package_json(about, list(binaries)).encode()),
        "README.md": File(about.text.encode()),
        "termgate.js": File((HERE / "termgate.js").read_bytes(), 0o755),
    }
    for machine, binary in binaries.items():
        files[f"bin/{CPUS[machine]}/termgate"] = File(binary.read_bytes(), 0o755)
    return files | licences(root, about)
