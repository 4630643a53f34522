"""Downloads of published data: resumed, checked by size and SHA-256, and put in place only when they are right."""

from __future__ import annotations

import re
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from http.client import HTTPException
from itertools import takewhile
from pathlib import Path
from typing import Any

from memharness.cli.unpack import Told, unpacked
from memharness.identity import digest, file_digest
from memharness.media import tree_digest
from memharness.store import disk_error
from memharness.types import Asset, UserError

HUB = re.compile(r"hf://datasets/(?P<repo>[^/@]+/[^/@]+)@(?P<revision>[^/@]+)")
BLOCK = 1 << 20
TRIES = 4  # in a row without a byte of progress
TIMEOUT = 60  # seconds without an answer
QUESTION = 10  # the same, where only the size is asked for
AGENT = {"User-Agent": "memharness"}


@dataclass(frozen=True)
class Fetched:
    """What lies in place of an asset. For a hub snapshot the digest is of its files' digests, the size their sum."""

    url: str
    sha256: str
    size: int


def fetch(asset: Asset, folder: Path, held: str | None, tell: Told) -> Fetched:
    """Bring an asset into a folder, unless it is there already.

    Args:
        asset: what to bring.
        folder: the prepared folder.
        held: the digest that was recorded when it was first fetched, for assets whose publisher gives none.
        tell: told how far it is.

    Raises:
        UserError: if it cannot be fetched, or is not what its publisher (or the first download) says.
    """
    target = folder / asset.path
    wanted = asset.sha256 or held
    if asset.url.startswith("hf://"):
        return _fetch_snapshot(asset.url, target, wanted)
    if target.is_file() and wanted and file_digest(target) == wanted:
        return Fetched(asset.url, wanted, target.stat().st_size)
    part = target.with_name(target.name + ".part")
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        _download(asset.url, part, tell)
        found = Fetched(asset.url, file_digest(part), part.stat().st_size)
        _check(asset, found, wanted, part)
        part.replace(target)
    except OSError as error:
        raise disk_error(error, target) from None
    return found


def sizes(assets: Sequence[Asset]) -> list[int]:
    """Bytes of each asset, by its card, else by its server; without those from the first that says nothing.

    Where a server cannot be asked, none after it is: behind a broken network each would be waited for.
    """
    stated = sorted(assets, key=lambda asset: asset.size is None)
    found = (asset.size if asset.size is not None else _asked_size(asset.url) for asset in stated)
    return [size for size in takewhile(lambda size: size is not None, found) if size is not None]


def _asked_size(url: str) -> int | None:
    try:
        if match := HUB.fullmatch(url):
            return _hub_size(match["repo"], match["revision"])
        request = urllib.request.Request(url, method="HEAD", headers=AGENT)
        with urllib.request.urlopen(request, timeout=QUESTION) as answer:
            length = answer.headers.get("Content-Length")
            return int(length) if length else None
    except Exception:  # of several HTTP libraries; the download says what is wrong
        return None


def _hub_size(repository: str, revision: str) -> int:
    from huggingface_hub import HfApi

    info = HfApi().dataset_info(repository, revision=revision, files_metadata=True, timeout=QUESTION)
    return sum(file.size or 0 for file in info.siblings or ())


def address(asset: Asset, target: Path) -> str:
    """Where a person finds an asset: a file, or all files of a hub snapshot and the command that brings them."""
    match = HUB.fullmatch(asset.url)
    if not match:
        return asset.url
    repository, revision = match["repo"], match["revision"]
    return (
        f"all files of https://huggingface.co/datasets/{repository}/tree/{revision}\n"
        f"    (hf download {repository} --repo-type dataset --revision {revision} --local-dir {target})"
    )


def placed(asset: Asset, folder: Path, held: str | None) -> Fetched:
    """An asset that someone put into the folder by hand; nothing is fetched.

    Raises:
        UserError: if it is not there, or not what its publisher (or the first download) says.
    """
    target = folder / asset.path
    wanted = asset.sha256 or held
    if asset.url.startswith("hf://"):
        if not target.is_dir() or not any(target.iterdir()):
            raise UserError(f"{target}: is empty; put the files of {asset.url} there")
        return _snapshot(asset.url, target, wanted)
    if not target.is_file():
        raise UserError(f"{target}: no such file; put there what {asset.url} holds")
    found = Fetched(asset.url, file_digest(target), target.stat().st_size)
    if problem := _problem(asset, found, wanted):
        raise UserError(f"{target}: {problem}: it is not what {asset.url} holds; put the right file there")
    return found


def _check(asset: Asset, found: Fetched, wanted: str | None, part: Path) -> None:
    problem = _problem(asset, found, wanted)
    if problem is None:
        return
    part.unlink()  # a resumed download would only add to what is wrong
    raise UserError(
        f"{asset.url}: {problem}: it was damaged on the way or changed by its publisher; try again, or give --data PATH"
    )


def _problem(asset: Asset, found: Fetched, wanted: str | None) -> str | None:
    if asset.size is not None and found.size != asset.size:
        return f"{found.size:,} bytes where {asset.size:,} were published"
    if wanted is not None and found.sha256 != wanted:
        return f"SHA-256 {found.sha256[:12]}… where {wanted[:12]}… is expected"
    return None


def _download(url: str, part: Path, tell: Told) -> None:
    """Fetch a URL into a file that may hold its beginning already.

    Raises:
        UserError: if the server refuses, or nothing comes any more.
    """
    idle = 0
    while True:
        start = part.stat().st_size if part.exists() else 0
        try:
            if _take(url, part, start, tell):
                return
            reason = "the connection broke off"
        except urllib.error.HTTPError as error:
            if error.code == 416 and start:  # nothing is left to send: it was whole but for its renaming
                return
            if error.code < 500 and error.code not in (408, 429):
                raise UserError(_refused(url, f"{error.code} {error.reason}")) from None
            reason = f"{error.code} {error.reason}"
        except urllib.error.URLError as error:
            reason = str(error.reason)
            if isinstance(error.reason, FileNotFoundError):
                raise UserError(_refused(url, reason)) from None
        except (TimeoutError, ConnectionError, HTTPException) as error:
            reason = str(error) or type(error).__name__
        grown = part.exists() and part.stat().st_size > start
        idle = 0 if grown else idle + 1
        if idle == TRIES:
            raise UserError(_refused(url, reason))
        time.sleep(0.1 * 4**idle)


def _refused(url: str, reason: str) -> str:
    return (
        f"{url}: cannot be fetched ({reason}); run the same command again later: what has come is kept. "
        "Or fetch it by other means and give --data PATH"
    )


def _take(url: str, part: Path, start: int, tell: Told) -> bool:
    """Append what is left of a URL to a file. Returns whether all of it has come."""
    request = urllib.request.Request(url, headers={**AGENT, **({"Range": f"bytes={start}-"} if start else {})})
    with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
        resumed = start > 0 and answer.status == 206
        begun = start if resumed else 0
        length = answer.headers.get("Content-Length")
        whole = begun + int(length) if length else None
        with part.open("ab" if resumed else "wb") as file:
            while block := answer.read(BLOCK):
                file.write(block)
                tell(file.tell(), whole)
            return whole is None or file.tell() >= whole


def _fetch_snapshot(url: str, target: Path, held: str | None) -> Fetched:
    match = HUB.fullmatch(url)
    if not match:
        raise UserError(f"{url}: expected hf://datasets/OWNER/NAME@REVISION")
    _snapshot_download(repo_id=match["repo"], repo_type="dataset", revision=match["revision"], local_dir=target)
    return _snapshot(url, target, held)


def _snapshot(url: str, target: Path, held: str | None) -> Fetched:
    """A hub snapshot that lies in its folder, without the client's own notes and what came out of its archives."""
    came = unpacked(target)
    files = {name: sha for name, sha in tree_digest(target).items() if name not in came}
    found = Fetched(url, digest(files), sum((target / name).stat().st_size for name in files))
    if held is not None and found.sha256 != held:
        raise UserError(f"{url}: its files are not those of the first download; remove {target} and prepare it again")
    return found


def _snapshot_download(**what: Any) -> None:
    """The hub client's own download, which resumes and checks.

    Raises:
        UserError: if the hub cannot be reached, or has no such data set at that revision.
    """
    from huggingface_hub import snapshot_download

    try:
        snapshot_download(**what)
    except Exception as error:  # the client lets errors of several HTTP libraries through
        short = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise UserError(_refused(f"hf://datasets/{what['repo_id']}@{what['revision']}", short)) from None
