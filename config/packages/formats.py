"""How packages are written: archives, .deb, wheel and npm package. Equal files and `epoch` give equal bytes.

Each function returns the file that it wrote.
"""

import base64
import csv
import gzip
import hashlib
import io
import os
import pathlib
import subprocess
import tarfile
import tempfile
import time
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
DEBIAN = {"x86_64": "amd64", "aarch64": "arm64"}


def archive(about, machine: str, files: dict, epoch: int, out: pathlib.Path) -> pathlib.Path:
    name = f"termgate-{about.version}-{machine}-linux"
    packed = tarball({f"{name}/{path}": file for path, file in files.items()}, epoch)
    target = out / f"{name}.tar.gz"
    target.write_bytes(packed)
    return target


def npm(about, files: dict, epoch: int, out: pathlib.Path) -> pathlib.Path:
    packed = tarball({f"package/{path}": file for path, file in files.items()}, epoch)
    target = out / f"termgate-{about.version}.tgz"
    target.write_bytes(packed)
    return target


def tarball(files: dict, epoch: int) -> bytes:
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for path, file in files.items():
            entry = tarfile.TarInfo(path)
            entry.size, entry.mode, entry.mtime = len(file.content), file.mode, epoch
            tar.addfile(entry, io.BytesIO(file.content))
    return gzip.compress(plain.getvalue(), mtime=0)


def deb(about, machine: str, files: dict, epoch: int, out: pathlib.Path) -> pathlib.Path:
    architecture = DEBIAN[machine]
    document = "share/doc/termgate/"
    files = dict(files)
    # Debian keeps the text of the Apache licence once, and expects the others and the changelog under these names.
    del files[f"{document}LICENSE-APACHE"], files[f"{document}LICENSE-MIT"]
    changes = files.pop(f"{document}CHANGELOG.md")
    changes.content = gzip.compress(changes.content, mtime=0)
    files[f"{document}changelog.gz"] = changes
    kilobytes = sum(-(-len(file.content) // 1024) for file in files.values())
    control = (HERE / "control").read_text().format(
        version=about.version, architecture=architecture, size=kilobytes, description=about.description.rstrip(".")
    )
    with tempfile.TemporaryDirectory() as directory:
        root = pathlib.Path(directory) / "root"
        for path, file in files.items():
            place(root / "usr" / path, file.content, file.mode)
        place(root / "usr" / document / "copyright", (HERE / "copyright").read_bytes(), 0o644)
        place(root / "DEBIAN" / "control", control.encode(), 0o644)
        for folder, _, _ in os.walk(root):
            os.chmod(folder, 0o755)
        command = ["dpkg-deb", "--build", "--root-owner-group", "-Zxz", "--threads-max=1", str(root)]
        target = out / f"termgate_{about.version}_{architecture}.deb"
        environment = os.environ | {"SOURCE_DATE_EPOCH": str(epoch)}
        subprocess.run([*command, str(target)], env=environment, check=True, stdout=subprocess.DEVNULL)
    return target


def place(path: pathlib.Path, content: bytes, mode: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    path.chmod(mode)


def wheel(about, machine: str, files: dict, epoch: int, out: pathlib.Path) -> pathlib.Path:
    # A static binary needs neither libc, so both tags are true; the versions are the oldest that installers look for.
    platforms = [f"{system}_{machine}" for system in ("manylinux_2_17", "manylinux2014", "musllinux_1_1")]
    tags = "".join(f"Tag: py3-none-{platform}\n" for platform in platforms)
    information = f"termgate-{about.version}.dist-info"
    about_wheel = f"Wheel-Version: 1.0\nGenerator: termgate\nRoot-Is-Purelib: false\n{tags}".encode()
    contents = {path: (file.content, file.mode) for path, file in files.items()}
    contents[f"{information}/WHEEL"] = (about_wheel, 0o644)
    contents[f"{information}/RECORD"] = (record(contents, f"{information}/RECORD"), 0o644)
    target = out / f"termgate-{about.version}-py3-none-{'.'.join(platforms)}.whl"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as packed:
        for path, (content, mode) in contents.items():
            entry = zipfile.ZipInfo(path, time.gmtime(epoch)[:6])
            entry.external_attr, entry.compress_type = (0o100000 | mode) << 16, zipfile.ZIP_DEFLATED
            packed.writestr(entry, content)
    return target


def record(contents: dict, own: str) -> bytes:
    """The list of a wheel's files with their hashes, without one for itself."""
    table = io.StringIO()
    rows = csv.writer(table, lineterminator="\n")
    for path, (content, _) in contents.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        rows.writerow([path, f"sha256={digest}", len(content)])
    rows.writerow([own, "", ""])
    return table.getvalue().encode()
