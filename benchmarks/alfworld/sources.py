"""What lies in the data: games, stored replays of them, and so the experts' ways through the games."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from memharness.benchmarks.alfworld.archives import is_archive
from memharness.benchmarks.alfworld.commands import command
from memharness.benchmarks.alfworld.games import Game, files, game_name, read_game, task_of
from memharness.benchmarks.alfworld.replays import Expert, Replay, is_replays, read_replays
from memharness.media import MediaStore
from memharness.types import DataError, Finding, UserError, did_you_mean

SIZES = {"train": 3553, "valid_seen": 140, "valid_unseen": 134}
"""Games of each official split."""
VALIDATION = ("valid_seen", "valid_unseen")
"""The splits that are asked about where no subset is named."""
ONE_RELEASE = "take both from one release"
NAMED = 10  # faulty files that are named one by one


@dataclass(frozen=True, slots=True)
class Trail:
    """An expert's way through a game.

    Attributes:
        name: the game's, `split/task-…/trial`.
        task: its task type.
        commands: what the expert did.
        game: the game's file; None if only a stored replay is at hand.
        stored: the stored replay; None if the commands must be played to know what came of them.
    """

    name: str
    task: str
    commands: tuple[str, ...]
    game: Game | None
    stored: Replay | None


class Sources:
    """The files under a path: games, archives of games, and stored replays (the latter in the folder itself)."""

    def __init__(self, path: Path, media: MediaStore) -> None:
        """Read nothing yet."""
        self.path = path
        self._media = media
        self._read: dict[str, Game] = {}

    def games(self, subset: str | None = None) -> list[Game]:
        """The games of a split, by name; of the validation splits where none is named and they are there.

        Raises:
            UserError: for a split that is not there.
            DataError: if there is no game, or a file is not as published.
        """
        return [self._game(name) for name in self._of(subset, self._paths)]

    def trails(self, expert: Expert, subset: str | None = None) -> list[Trail]:
        """An expert's ways through the games of a split, chosen and ordered as `games`.

        Raises:
            UserError: for a split that is not there.
            DataError: if there is none, or a stored replay does not belong to its game.
        """
        stored = {name: one for (whose, name), one in self.stored.items() if whose == expert}
        names = {*stored, *(self._paths if expert == "walkthrough" else ())}
        if not names and self._paths:
            raise DataError(
                f"{self.path}: holds no game of the expert {expert}; "
                "put its stored replays (.jsonl or .jsonl.xz) beside the games, or choose another with -B expert=…"
            )
        return [self._trail(name, stored.get(name)) for name in self._of(subset, names)]

    @cached_property
    def stored(self) -> Mapping[tuple[Expert, str], Replay]:
        """The stored replays at hand, by expert and the game's name.

        Raises:
            DataError: for a file that is not as it should be, or a game that is stored twice.
        """
        found: dict[tuple[Expert, str], Replay] = {}
        for path in self._replay_files():
            for one in filter(None, read_replays(path)):
                first = found.setdefault((one.expert, one.name), one)
                if first is not one:
                    raise DataError(f"{one.where}: gamefile: {one.name} is also {first.where}; remove one of them")
        return found

    def _of(self, subset: str | None, names: Iterable[str]) -> list[str]:
        ordered = sorted(names)
        splits = list(dict.fromkeys(name.split("/")[0] for name in ordered))
        if not splits:
            raise DataError(f"{self.path}: holds no game; name the folder or archive of the games")
        if subset is not None and subset not in splits:
            raise UserError(f"subset {subset!r}: {self.path} holds {', '.join(splits)}{did_you_mean(subset, splits)}")
        validation = [split for split in splits if split in VALIDATION]
        chosen = [subset] if subset is not None else validation or splits
        return [name for name in ordered if name.split("/")[0] in chosen]

    def digest(self) -> Mapping[str, str]:
        """Digests of the games, or their archives where only those are at hand, and of the stored replays."""
        if not self.path.is_dir():
            return {self.path.name: self._media.digest(self.path)}
        games = [file for file in self._paths.values() if file.is_relative_to(self.path)]
        held = games or list(filter(is_archive, self.path.iterdir()))
        named = sorted([*held, *self._replay_files()])
        return {str(file.relative_to(self.path)): self._media.digest(file) for file in named}

    def check(self) -> Sequence[Finding]:
        """Games by split against the release, files that are not as published, and stored replays."""
        try:
            paths = self._paths
        except DataError as error:
            return [Finding("error", str(self.path), str(error))]
        faults = [Finding("error", str(paths[name]), fault) for name in paths if (fault := self._fault(name))]
        if len(faults) > NAMED:
            said = f"{len(faults):,} of {len(paths):,} game files are faulty; {NAMED} are named"
            return [*faults[:NAMED], Finding("error", str(self.path), said)]
        return faults or list(self._findings())

    def _findings(self) -> Iterable[Finding]:
        where = str(self.path)
        try:
            for split, n in sorted(Counter(name.split("/")[0] for name in self._paths).items()):
                size = SIZES.get(split)
                whole = "the whole split" if n == size else f"a part of the {size:,}" if size else "no official split"
                yield Finding("info", where, f"{n:,} games of {split}: {whole}")
            for path in self._replay_files():
                told = list(read_replays(path))
                lost = told.count(None)
                yield Finding("info", str(path), f"{len(told) - lost:,} stored replays; {lost:,} not won, left out")
            for (_, name), one in self.stored.items():
                self._trail(name, one)
        except DataError as error:
            yield Finding("error", where, str(error))
            return
        if not self._paths and not self.stored:
            yield Finding("error", where, "holds no game and no stored replay; name the folder or archive of the games")
        if old := [name for name in self._paths if "put {o} in/on {r}" in self._game(name).content()["grammar"]]:
            yield Finding("info", where, f"{len(old):,} games of the older grammar (`put O in/on R`), such as {old[0]}")

    @cached_property
    def _paths(self) -> Mapping[str, Path]:
        """Game files by the game's name, in the order of names."""
        if not self.path.exists():
            raise DataError(f"{self.path}: no such file or folder; name the folder or archive of the games")
        found: dict[str, Path] = {}
        for path in [] if is_replays(self.path) else files(self.path, self._media):
            first = found.setdefault(game_name(path.absolute()), path)
            if first is not path:
                raise DataError(f"{path}: is the same game as {first}; remove one of them")
        return found

    def _game(self, name: str) -> Game:
        if name not in self._read:
            self._read[name] = read_game(self._paths[name])
        return self._read[name]

    def _fault(self, name: str) -> str:
        try:
            self._game(name)
        except DataError as error:
            return str(error)
        return ""

    def _replay_files(self) -> list[Path]:
        return sorted(filter(is_replays, self.path.iterdir() if self.path.is_dir() else [self.path]))

    def _trail(self, name: str, stored: Replay | None) -> Trail:
        game = self._game(name) if name in self._paths else None
        if stored is None:
            assert game is not None  # a name is of one or the other
            if not game.walkthrough:
                raise DataError(f"{game.path}: walkthrough: is missing or empty; only live games can do without it")
            return Trail(name, game.task, game.walkthrough, game, None)
        said = tuple(step.action for step in stored.steps)
        known = game.walkthrough if game and stored.expert == "walkthrough" else ()
        if known and [*map(command, said)] != [*map(command, known)]:
            raise DataError(f"{stored.where}: steps: are not the walkthrough in the game file; {ONE_RELEASE}")
        return Trail(name, task_of(name, stored.where), said, game, stored)
