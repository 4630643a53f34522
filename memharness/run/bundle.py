"""A run in one file, which `verify` accepts on any machine, with or without the benchmark's data.

A zip with the same bytes each time: members by name, at a fixed time. `checksums.json` holds every member's SHA-256.
Nothing in it tells whose machine it was: folders become their last name, the home folder `~`; the value of a secret in
the environment is refused, wherever it stands.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any

import memharness
from memharness.benchmark import Benchmark, Data
from memharness.config import Config, build
from memharness.media import MediaStore
from memharness.run import api
from memharness.run.data import benchmark_class
from memharness.run.folder import RunFolder
from memharness.run.pictures import Picture, pictures
from memharness.run.spec import RunSpec
from memharness.run.wire import image_in
from memharness.store import document, read_lines, whole
from memharness.types import UserError

FORMAT = 1
CHECKSUMS = "checksums.json"
FILES = ("manifest.json", "records.jsonl", "gold.jsonl", "scores.jsonl", "summary.json")
FOLDERS = ("ledger", "judgements")
PATHS = ("data", "out", "readouts")  # of a spec: where something lay on this machine
CLASSES = ("method", "bench", "reader", "judge", "embedder")  # of a spec: perhaps a class in a file of this machine
SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL", re.IGNORECASE)
LEAST_SECRET = 8  # characters: shorter values of such variables are words, not secrets
FIXED = (1980, 1, 1, 0, 0, 0)
MOST_FACTOR, MOST_SPARE = 200, 64 << 20  # of a bundle: JSON lines shrink, but never like a bomb
CHUNK = 1 << 20
DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, ValueError)  # what reading a member may raise


@dataclass(frozen=True)
class Bundled:
    """What was written: the file, its SHA-256, how many members and pictures, and its bytes."""

    path: Path
    sha256: str
    members: int
    pictures: int
    size: int


# ------------------------------------------------------------------------------------------------------------ writing


def bundle(run: Path, out: Path | None, *, media: bool = True) -> Bundled:
    """Write a finished run into one file, and verify it as it will be elsewhere.

    Args:
        run: the run's folder.
        out: the file; by default `<run>.zip` in the working folder.
        media: whether the pictures of questions, recalled evidence and answers go in.

    Raises:
        UserError: for no run, an unfinished one, one whose figures do not verify, a secret in it, pictures that are not
            at hand, or a file that cannot be written.
    """
    folder = RunFolder(run)
    manifest = folder.manifest()
    api.load_summary(run)
    path = out or Path(f"{run.resolve().name}.zip")
    if path.is_dir():
        raise UserError(f"--out {path}: is a folder; name a file")
    shown = pictures(folder) if media else {}
    with whole(path) as temporary:
        members = _write(temporary, folder, manifest, shown)
        if differences := verify(temporary, manifest["spec"]["bench"]):
            raise UserError(f"{run}: its figures do not verify, so it is not bundled: {differences[0]}")
        digest, size = _digest(temporary), temporary.stat().st_size
    return Bundled(path, digest, members, len(shown), size)


def _write(path: Path, folder: RunFolder, manifest: Mapping[str, Any], shown: Mapping[str, Picture]) -> int:
    """Write all members, each as its checksum says; returns how many."""
    sources: dict[str, Path] = {name: folder.path / name for name in FILES}
    for part in FOLDERS:
        sources |= {f"{part}/{file.name}": file for file in folder.files(part)}
    sources |= {f"media/{picture.name}": picture.path for picture in shown.values()}
    hide = _Hide(folder, manifest)
    sums: dict[str, dict[str, Any]] = {}
    with zipfile.ZipFile(path, "w") as archive:
        for name in sorted(sources):
            with _member(archive, name) as member, _open(sources[name]) as file:
                for block in _blocks(file, name, hide):
                    member.write(block)
                sums[name] = {"sha256": member.sha256.hexdigest(), "size": member.size}
        head = {"format": FORMAT, "memharness": memharness.__version__, "identity": manifest["identity"]["reply"]}
        with _member(archive, CHECKSUMS) as member:
            member.write((json.dumps({**head, "members": sums}, indent=1) + "\n").encode())
    return len(sums)


class _Counted:
    """A member being written, with its size and hash so far."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file, self.size, self.sha256 = file, 0, hashlib.sha256()

    def write(self, block: bytes) -> None:
        self.file.write(block)
        self.size += len(block)
        self.sha256.update(block)


@contextmanager
def _member(archive: zipfile.ZipFile, name: str) -> Iterator[_Counted]:
    info = zipfile.ZipInfo(name, FIXED)
    info.compress_type = zipfile.ZIP_STORED if name.startswith("media/") else zipfile.ZIP_DEFLATED
    info.create_system, info.external_attr = 3, 0o644 << 16
    with archive.open(info, "w", force_zip64=True) as file:
        yield _Counted(file)


def _open(path: Path) -> IO[bytes]:
    try:
        return path.open("rb")
    except OSError as error:
        raise UserError(
            f"{path}: cannot be read ({error.strerror}); run the same command again to finish the run"
        ) from None


def _blocks(file: IO[bytes], name: str, hide: _Hide) -> Iterator[bytes]:
    """A member's bytes: media as they are, text line by line without what tells whose machine it was."""
    if name.startswith("media/"):
        while block := file.read(CHUNK):
            yield block
    elif name in ("manifest.json", "summary.json"):
        yield hide.document(json.loads(file.read()), name)
    else:
        for number, line in enumerate(file, 1):
            yield hide.line(line, f"{name}: line {number}")


class _Hide:
    """Takes out of a run's text what belongs to this machine or user."""

    def __init__(self, folder: RunFolder, manifest: Mapping[str, Any]) -> None:
        spec = manifest["spec"]
        paths = {str(folder.path): folder.path.resolve().name, str(folder.path.resolve()): folder.path.resolve().name}
        for name in PATHS:
            if value := spec.get(name):
                paths[str(value)] = Path(value).name
                paths[str(Path(value).expanduser().resolve())] = Path(value).name
        for name in CLASSES:
            if ".py:" in str(spec.get(name)):
                paths[str(spec[name])] = Path(spec[name]).name
        self.paths = {old: new for old, new in paths.items() if "/" in old}
        self.paths[str(Path.cwd())] = "."
        self.paths[str(Path.home())] = "~"
        ordered = sorted((old for old in self.paths if len(old) > 1), key=len, reverse=True)
        self.pattern = re.compile(rf"(?<![\w.-])(?:{'|'.join(map(re.escape, ordered))})(?![\w.-])")
        self.secrets = {
            name: value.encode()
            for name, value in os.environ.items()
            if (SECRET.search(name) or name == spec["reader_options"].get("key_env"))
            and len(value) >= LEAST_SECRET
            and not value.startswith("/")
        }

    def document(self, value: Any, name: str) -> bytes:
        """A small file, written anew."""
        return self.line(document(value).encode(), name)

    def line(self, line: bytes, where: str) -> bytes:
        """A line of a file.

        Raises:
            UserError: if it holds the value of a secret.
        """
        for name, value in self.secrets.items():
            if value in line:
                raise UserError(f"{where}: holds the value of {name}; a bundle is made to be shared, so it is not made")
        text = line.decode(errors="surrogateescape")
        return self.pattern.sub(lambda found: self.paths[found[0]], text).encode(errors="surrogateescape")


# ------------------------------------------------------------------------------------------------------------ reading


def verify(path: Path, bench: str | None = None) -> list[str]:
    """What differs in a bundle: members that are not as they were bundled, figures that do not recompute.

    Neither the benchmark's data nor a model is needed.

    Args:
        path: the bundle.
        bench: where the benchmark's class is, if not where the bundle says: it may be a file of this machine.

    Raises:
        UserError: for a file that is no bundle, or one that is made to do harm.
    """
    with tempfile.TemporaryDirectory(prefix="memharness-bundle-") as temporary:
        folder = Path(temporary) / "run"
        if differences := unpack(path, folder):
            return differences
        (folder / "DONE").touch()
        spec = RunSpec.from_json(RunFolder(folder).manifest()["spec"], f"{path}: manifest.json")
        try:
            _keep(folder)
            found = api.verify(folder, _benchmark(bench or spec.bench, spec.bench_options, folder))
            return [line.replace(str(folder), str(path)) for line in found]
        except UserError as error:
            raise type(error)(str(error).replace(str(folder), str(path))) from None


def _keep(folder: Path) -> None:
    """Keep the pictures that answers brought as a run does: there may be scores that look at them."""
    media = MediaStore()
    for _, record in read_lines(folder / "records.jsonl"):
        with suppress(KeyError, TypeError, AttributeError):  # a damaged line is named by what reads it next
            for image in map(image_in, record.get("pictures", ())):
                file = folder / "media" / Picture(image, folder).name
                if file.is_file():
                    media.keep(file.read_bytes(), image.source, f"media/{file.name}")


def _benchmark(name: str, options: Mapping[str, Any], nowhere: Path) -> Benchmark:
    """The benchmark without data: it gives its metrics and its report, which need none."""
    found = benchmark_class(name)
    config: Config = build(found.options_class, options, "-B", name)
    return found(Data(nowhere, "bundled", MediaStore()), config)


def unpack(path: Path, folder: Path) -> list[str]:
    """Unpack a bundle into a new folder; returns what is not as it was bundled, in which case it is of no use.

    Raises:
        UserError: as `verify`.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            infos = _safe(path, archive)
            sums = _checksums(path, archive, infos)
            differences = [f"{name}: is not there" for name in sorted(set(sums) - set(infos))]
            differences += [f"{name}: was put in" for name in sorted(set(infos) - set(sums) - {CHECKSUMS})]
            for name in sorted(set(sums) & set(infos)):
                differences += _extract(archive, infos[name], folder / name, sums[name])
            return differences
    except (OSError, zipfile.BadZipFile, NotImplementedError) as error:
        raise UserError(f"{path}: not a bundle that can be read ({error}); fetch it again") from None


def _safe(path: Path, archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """Members by name, none of which could write elsewhere, twice, or without end."""
    infos: dict[str, zipfile.ZipInfo] = {}
    for info in archive.infolist():
        name = info.orig_filename
        parts = PurePosixPath(name).parts
        kind = stat.S_IFMT(info.external_attr >> 16)
        if not parts or name.startswith("/") or {"..", "."} & set(name.split("/")) or re.search(r"[\\\0:]|//|/$", name):
            raise UserError(f"{path}: member {name!r} would be written elsewhere; not unpacked")
        if kind not in (0, stat.S_IFREG):
            raise UserError(f"{path}: member {name!r} is no plain file; not unpacked")
        if name in infos:
            raise UserError(f"{path}: member {name!r} is there twice; not unpacked")
        infos[name] = info
    names = set(infos)
    if inside := sorted(name for name in names if names & set(map(str, PurePosixPath(name).parents))):
        raise UserError(f"{path}: member {inside[0]!r} lies in another one; not unpacked")
    size, total = path.stat().st_size, sum(info.file_size for info in infos.values())
    if total > MOST_FACTOR * size + MOST_SPARE:
        raise UserError(f"{path}: {size:,} bytes that unpack to {total:,} are no run; not unpacked")
    return infos


def _checksums(path: Path, archive: zipfile.ZipFile, infos: Mapping[str, zipfile.ZipInfo]) -> dict[str, dict[str, Any]]:
    if CHECKSUMS not in infos:
        raise UserError(f"{path}: not a bundle, it has no {CHECKSUMS}; `memharness bundle RUN` makes one")
    try:
        value = json.loads(archive.read(CHECKSUMS))
        members = dict(value["members"])
        made = value["format"]
        if not all(isinstance(one["sha256"], str) and isinstance(one["size"], int) for one in members.values()):
            raise ValueError("a member without its sha256 and size")
    except (*DAMAGE, KeyError, TypeError) as error:
        raise UserError(f"{path}: {CHECKSUMS} is damaged ({type(error).__name__}: {error}); fetch it again") from None
    if made != FORMAT:
        raise UserError(f"{path}: made in bundle format {made}; this memharness reads {FORMAT}")
    return members


def _extract(archive: zipfile.ZipFile, info: zipfile.ZipInfo, to: Path, told: Mapping[str, Any]) -> list[str]:
    """Write a member out and hold it against its checksum."""
    to.parent.mkdir(parents=True, exist_ok=True)
    sha256 = hashlib.sha256()
    try:
        with archive.open(info) as member, to.open("wb") as file:
            while block := member.read(CHUNK):
                sha256.update(block)
                file.write(block)
    except DAMAGE as error:
        return [f"{info.filename}: damaged ({error})"]
    if sha256.hexdigest() != told["sha256"] or info.file_size != told["size"]:
        return [f"{info.filename}: is not as it was bundled (SHA-256 {sha256.hexdigest()[:12]}…)"]
    return []


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
