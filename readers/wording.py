"""From a request to the tokens of a model's prompt, pictures still to be put in, and from tokens back to words."""

from __future__ import annotations

import bisect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memharness.reader import Request
from memharness.types import Image, Part, ReaderError, Text, UserError, Video

THINK = ("<think>", "</think>")  # Qwen3, GLM-4.1V and InternVL3.5 open and close their thinking with these


@dataclass(frozen=True, slots=True)
class Worded:
    """A prompt in tokens.

    Attributes:
        ids: token ids; a picture is the one placeholder that the chat template writes.
        pictures: in the order of their placeholders.
        thinking: whether the prompt ends inside thinking, which its template opened.
    """

    ids: list[int]
    pictures: tuple[Image, ...]
    thinking: bool


class Wording:
    """A model's chat template and tokenizer, without the model: for networks, and for engines that put pictures in."""

    def __init__(self, tokenizer: Any, processor: Any = None, template: Mapping[str, Any] | None = None) -> None:
        """Take what transformers loaded.

        Args:
            tokenizer: of the model.
            processor: of a model that sees; None for one of words only.
            template: options of the chat template.
        """
        self.tokenizer = tokenizer
        self.sees = processor is not None
        self._fill = (processor or tokenizer).apply_chat_template
        self._template = dict(template or {})
        added = tokenizer.added_tokens_decoder.items()
        self._specials = [token.content for _, token in added if token.special]
        self._unsaid = {key for key, token in added if token.special and token.content not in THINK}
        self.may_think = any(token.content == THINK[1] for _, token in added)

    @classmethod
    def load(cls, source: str | Path, revision: str | None, sees: bool, template: Mapping[str, Any]) -> Wording:
        """Load a model's tokenizer, and its processor if it sees. No code that comes with a model is ever run.

        Raises:
            UserError: transformers cannot load it.
        """
        import transformers

        auto: Any = transformers.AutoProcessor if sees else transformers.AutoTokenizer
        try:
            loaded = auto.from_pretrained(source, revision=revision, trust_remote_code=False)
        except (OSError, ValueError, KeyError, ImportError) as error:
            what = "processor" if sees else "tokenizer"
            raise UserError(f"{source}: its {what} cannot be loaded ({type(error).__name__}: {error})") from error
        return cls(loaded.tokenizer, loaded, template) if sees else cls(loaded, None, template)

    def encode(self, request: Request) -> Worded:
        """A request's prompt: the chat template around each message, and the prefill after it.

        Template marks that stand in a memory stay words.

        Raises:
            ReaderError: a part is of a kind the model cannot see, or the template refuses the messages.
        """
        self.check(request)
        pictures = tuple(part for part in request.parts() if isinstance(part, Image))
        pieces = self.pieces(request)
        ids: list[int] = []
        for text, literal in pieces:
            ids += self.tokenizer.encode(text, add_special_tokens=False, split_special_tokens=literal)
        return Worded(ids, pictures, opens_thinking(pieces, request))

    def check(self, request: Request) -> None:
        """Refuse what the model cannot see.

        Raises:
            ReaderError: naming it.
        """
        kinds = (Text, Image) if self.sees else (Text,)
        if any(isinstance(part, Video) for part in request.parts()):
            raise ReaderError("this reader takes words and pictures, no video; use --view captions")
        if any(not isinstance(part, kinds) for part in request.parts()):
            raise ReaderError("this model sees no pictures (capability `image`); use --view captions or another reader")

    def pieces(self, request: Request) -> list[tuple[str, bool]]:
        """The prompt's texts as they are encoded, and whether marks in them are only words.

        One text, or several where a memory holds marks of the template.

        Raises:
            ReaderError: the template refuses the messages.
        """
        turns = [(message.role, _contents(message.parts)) for message in request.messages]
        words = [part for _, parts in turns for part in parts if part is not None]
        if not any(special in part for part in words for special in self._specials):
            return [(self._render(turns) + request.prefill, False)]
        # Someone wrote `<|im_end|>` into a memory. Every content is then encoded alone, where it is only words.
        marks = [f"\ue000{index}\ue001" for index in range(len(words))]
        given = iter(marks)
        marked = [(role, [part and next(given) for part in parts]) for role, parts in turns]
        rest = self._render(marked)
        pieces: list[tuple[str, bool]] = []
        for mark, part in zip(marks, words, strict=True):
            before, _, rest = rest.partition(mark)
            pieces += [(before, False), (part, True)]
        return [*pieces, (rest + request.prefill, False)]

    def _render(self, turns: Sequence[tuple[str, Sequence[str | None]]]) -> str:
        """The chat template filled in, open for the answer. A picture is None, and becomes its placeholder."""
        import jinja2

        messages = [
            {"role": role, "content": [_content(part) for part in parts] if self.sees else "".join(map(str, parts))}
            for role, parts in turns
        ]
        try:
            return str(self._fill(messages, tokenize=False, add_generation_prompt=True, **self._template))
        except jinja2.TemplateError as error:
            raise ReaderError(f"the model's chat template refuses these messages: {error}") from error

    def decode(self, ids: Sequence[int]) -> str:
        """The words of generated tokens, without special tokens but with the tags of thinking."""
        said = [token for token in ids if token not in self._unsaid]
        return str(self.tokenizer.decode(said, skip_special_tokens=False, clean_up_tokenization_spaces=False))

    def thinking_tokens(self, ids: Sequence[int]) -> int:
        """How many of a reply's tokens it thought with, its last closing tag included; all of them if it has none."""
        tags = self.decode(ids).count(THINK[1])
        if not tags:
            return len(ids)
        return bisect.bisect_left(range(len(ids)), tags, key=lambda n: self.decode(ids[:n]).count(THINK[1]))


def opens_thinking(pieces: Sequence[tuple[str, bool]], request: Request) -> bool:
    """Whether a prompt ends inside thinking, which its template opened; the prefill stands after that."""
    return pieces[-1][0].removesuffix(request.prefill).rstrip().endswith(THINK[0])


def split_thinking(said: str, opened: bool) -> tuple[str, str, bool]:
    """What a model thought, what it answered, and whether it was still thinking when it stopped.

    The last closing tag counts, since thinking may quote one. Thinking that was never closed leaves no answer.

    Args:
        said: the generated words.
        opened: whether the prompt had opened the thinking already.
    """
    opening, closing = THINK
    thought, closed, answer = said.rpartition(closing)
    if answer.lstrip().startswith(opening) or (opened and not closed):
        return said.strip().removeprefix(opening).strip(), "", True
    if not closed:
        return "", said, False
    return thought.strip().removeprefix(opening).strip(), answer.lstrip(), False


def _contents(parts: Sequence[Part]) -> list[str | None]:
    """Parts as a template takes them: adjacent words joined, no empty ones, a picture as None."""
    contents: list[str | None] = []
    for part in parts:
        if not isinstance(part, Text):
            contents.append(None)
        elif part.text:
            before = contents.pop() if contents and contents[-1] is not None else ""
            contents.append(f"{before}{part.text}")
    return contents


def _content(part: str | None) -> dict[str, str]:
    return {"type": "image"} if part is None else {"type": "text", "text": part}
