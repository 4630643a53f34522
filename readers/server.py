"""A connection to a server that speaks the OpenAI API: its address, its key, one retry policy, and clean errors."""

from __future__ import annotations

import email.utils
import ipaddress
import json
import math
import os
import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from memharness.config import Config, option
from memharness.reader import Counter, ReaderCard
from memharness.readers.congestion import Congestion
from memharness.readers.counters import Bytes4, tokenizer_counter
from memharness.types import OverWindow, ReaderError, UserError

DEFAULT_URL = "https://api.openai.com/v1"

_TRANSIENT = frozenset({408, 409, 425, 429})
_BUSY = frozenset({429, 503, 529})
_TOO_LONG = re.compile(
    r"context[ _](?:length|window|size)|max model len|prompt is too long|input is too long|too many (?:input )?tokens|"
    r"longer than the maximum model length",
    re.IGNORECASE,
)
_REFUSALS = frozenset({"content_filter", "content_policy_violation", "moderation_blocked"})
_SECRET = re.compile(r"\b(?:sk|pk|rk|Bearer|api[-_]?key)[-_ =:]+[\w.*-]{6,}", re.IGNORECASE)
_DATA_URL = re.compile(r"data:[\w/+.-]+;base64,[\w+/=]+")


Body = Mapping[str, Any] | Callable[[], Any]
"""A call's words, sent as JSON; or what makes its aiohttp form, which each try uses up."""


class ServerConfig(Config):
    """Where the server is, and how patiently it is asked."""

    base_url: str = option("", "Address of the API; by default OPENAI_BASE_URL, else OpenAI's own.", how=True)
    key_env: str = option(
        "OPENAI_API_KEY", "Environment variable that holds the key; a key is never an option itself.", how=True
    )
    server: str = option(
        "", "Name of the server in the identity; by default its host, or `local` on this machine.", how=True
    )
    revision: str = option(
        "", "What you know of the model's revision, quantisation or build; part of the identity.", how=True
    )
    hosted: bool | None = option(
        None, "Whether calls cost money; by default they do unless the server is local.", how=True
    )
    attempts: int = option(
        6, "Tries of one call in all: after 408, 409, 425, 429, 5xx, time-outs, lost connections.", ge=1, how=True
    )
    first_wait: float = option(
        0.5,
        "Longest wait before the second try, doubled each time; a Retry-After header wins.",
        unit="seconds",
        ge=0,
        how=True,
    )
    max_wait: float = option(
        60.0, "Longest wait; a Retry-After beyond it ends the call with an error.", unit="seconds", ge=0, how=True
    )
    timeout: float = option(120.0, "How long one try may take.", unit="seconds", gt=0, how=True)
    max_inflight: int = option(32, "Most calls at once.", ge=1, how=True)
    adaptive: bool = option(
        True,
        "Begin with 16 calls at once, go up to max_inflight while the server keeps up, cut when it is busy.",
        how=True,
    )
    tokenizer: str = option(
        "", "Path of a tokenizer.json to count budgets by; without it `bytes4` estimates.", how=True
    )


class _Transient(Exception):
    """A failure worth another try; `wait` is what the server asks for, in seconds."""

    def __init__(self, message: str, wait: float | None, *, busy: bool = False) -> None:
        super().__init__(message)
        self.wait = wait
        self.busy = busy


class _Status(Exception):
    """A reply with an error status, in the server's words; `code` is OpenAI's name for the error, if it gives one."""

    def __init__(self, status: int, said: str, reply: object, headers: Mapping[str, str]) -> None:
        super().__init__(f"status {status}: {said}")
        self.status = status
        self.headers = headers
        told = reply.get("error", reply) if isinstance(reply, dict) else None
        self.code = str(told.get("code") or "") if isinstance(told, dict) else ""


class Filtered(Exception):
    """The server's content filter refused the prompt before the model saw it."""


class Server:
    """A connection: one retry policy, and errors free of keys and pictures."""

    def __init__(self, model: str, config: ServerConfig) -> None:
        """Take the address apart; nothing is opened.

        Raises:
            UserError: no model is named, or the address is not one.
        """
        if not model:
            raise UserError("openai: which model? Write openai:MODEL, such as openai:gpt-4.1-mini")
        self.model = model
        self.config = config
        self.url = config.base_url or os.environ.get("OPENAI_BASE_URL") or DEFAULT_URL
        address = urlsplit(self.url)
        if address.scheme not in ("http", "https") or not address.hostname:
            raise UserError(f"base_url={self.url.rpartition('@')[2]}: expected http://HOST:PORT/v1 or https://HOST/v1")
        self.host = address.hostname
        self.local = is_loopback(self.host)
        self.window = Congestion(config.max_inflight, 16 if config.adaptive else config.max_inflight)
        self._key = ""

    @property
    def shown(self) -> str:
        """The address without a password or query in it."""
        address = urlsplit(self.url)
        return f"{address.scheme}://{address.netloc.rpartition('@')[2]}{address.path}"

    def card(self, **more: Any) -> ReaderCard:
        """The card; `server` and `revision` stand in it, so they are not options of the identity as well."""
        config = self.config
        return ReaderCard(
            name="openai",
            model=self.model,
            revision=config.revision,
            backend=f"openai@{config.server or ('local' if self.local else self.host)}",
            max_inflight=config.max_inflight,
            hosted=not self.local if config.hosted is None else config.hosted,
            provenance={"base_url": self.shown, "determinism": "the server's own; not promised at temperature 0"},
            **more,
        )

    async def open(self) -> Mapping[str, Any]:
        """Make the client and ask the server what it knows of the model.

        Returns:
            The model's entry in the server's list, empty where there is none or no list.

        Raises:
            UserError: no key, a key the server refuses, or no server there.
        """
        import aiohttp
        import stamina

        stamina.instrumentation.set_on_retry_hooks([])  # its log lines would stand in the middle of the run's progress
        self._key = os.environ.get(self.config.key_env, "").strip()
        if not self._key and self.url == DEFAULT_URL:
            raise UserError(
                f"openai:{self.model}: set {self.config.key_env} to your key, or base_url to a local server"
            )
        # OpenAI's own client costs three times the processor time of this, which at 64 calls at once is what limits.
        self._session = aiohttp.ClientSession(
            headers={"Authorization": self._authorization(), **_account()},
            timeout=aiohttp.ClientTimeout(total=self.config.timeout),
            connector=aiohttp.TCPConnector(limit=0),  # the window says how many
            cookie_jar=aiohttp.DummyCookieJar(),
        )
        self._proxy = None if proxy_bypass(self.host) else getproxies().get(urlsplit(self.url).scheme)
        try:
            return await self._entry()
        except UserError:
            await self.close()
            raise

    async def _entry(self) -> Mapping[str, Any]:
        """The model in the server's list; not every server has one, and a list of another form is no reason to stop."""
        try:
            listed = await self._send("GET", "/models")
        except _Status as error:
            if error.status in (401, 403):
                raise UserError(f"{self.shown} refuses the key in {self.config.key_env}: {error}") from None
            return {}
        except _Transient as error:
            raise UserError(f"no server answers at {self.shown} ({error}); start it, or set base_url") from None
        except ReaderError:
            return {}
        entries = listed.get("data")
        known = [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
        return next((entry for entry in known if entry.get("id") == self.model), {})

    def _authorization(self) -> str:
        import aiohttp

        address = urlsplit(self.url)
        if address.username is None:
            return f"Bearer {self._key or 'none'}"
        return aiohttp.BasicAuth(unquote(address.username), unquote(address.password or "")).encode()

    async def post(self, path: str, words: Body) -> Mapping[str, Any]:
        """Send a call, again while its failure may pass, and return the JSON object that came back.

        Raises:
            OverWindow: the prompt does not fit.
            ReaderError: it failed for good, or as often as `attempts` allows.
        """
        import stamina

        config = self.config
        tries = stamina.retry_context(
            on=_wait,
            attempts=config.attempts,
            timeout=None,
            wait_initial=config.first_wait / 2,
            wait_max=config.max_wait,
            wait_jitter=config.first_wait / 2,
        )
        try:
            async for attempt in tries:
                with attempt:
                    return await self._try(path, words)
        except _Transient as error:
            raise ReaderError(f"openai:{self.model}: {error} ({config.attempts} tries)") from None
        raise AssertionError("a retry context ends by return or raise")

    async def _try(self, path: str, words: Body) -> Mapping[str, Any]:
        """One try in the window of calls; the wait before the next is spent outside it."""
        async with self.window.place() as ticket:
            try:
                made = await self._once(path, words)
            except _Transient as error:
                if error.busy:
                    self.window.busy_signal(ticket)
                raise
        self.window.answered()
        return made

    async def _once(self, path: str, words: Body) -> Mapping[str, Any]:
        try:
            return await self._send("POST", path, words)
        except _Status as error:
            raise self._meaning(error) from None

    async def _send(self, verb: str, path: str, words: Body | None = None) -> Mapping[str, Any]:
        """One request, and the JSON object that came back.

        Raises:
            _Status: the server's status is an error's.
            _Transient: the connection failed, or took too long.
            ReaderError: what came back is no JSON object.
        """
        import aiohttp

        body: dict[str, Any] = {"data": words()} if callable(words) else {"json": words}
        try:
            async with self._session.request(verb, self._address(path), proxy=self._proxy, **body) as response:
                came = await response.read()
        except TimeoutError:
            raise _Transient(f"timed out after {self.config.timeout:g} s", None) from None
        except aiohttp.ClientError as error:
            raise _Transient(f"the connection failed: {self.clean(error or type(error).__name__)}", None) from None
        try:
            reply = json.loads(came)
        except ValueError:
            reply = came.decode("utf-8", "replace")
        if response.status >= 400:
            raise _Status(response.status, self.clean(reply), reply, response.headers)
        if not isinstance(reply, dict):
            raise ReaderError(f"openai:{self.model}: malformed reply: {self.clean(reply) or 'nothing'}")
        return reply

    def _address(self, path: str) -> str:
        address = urlsplit(self.url)
        host = address.netloc.rpartition("@")[2]
        return address._replace(netloc=host, path=address.path.rstrip("/") + path).geturl()

    def _meaning(self, error: _Status) -> Exception:
        """What a reply with an error status means."""
        said = f"openai:{self.model}: {error}"
        if error.status in (400, 413, 422) and _TOO_LONG.search(str(error).replace("_", " ")):
            return OverWindow(said)
        if error.status == 400 and error.code in _REFUSALS:
            return Filtered(str(error))
        if error.code == "insufficient_quota" or not (error.status in _TRANSIENT or error.status >= 500):
            return ReaderError(said)
        wait = retry_after(error.headers)
        if wait is not None and wait > self.config.max_wait:
            return ReaderError(
                f"{said}; the server asks to wait {wait:.0f} s, more than max_wait={self.config.max_wait:g}"
            )
        return _Transient(str(error), wait, busy=error.status in _BUSY)

    def clean(self, error: object) -> str:
        """An error's words without the key, anything that looks like one, or pictures; at most 500 characters."""
        text = str(error)
        if len(self._key) >= 8:  # a stand-in such as `x` is no secret
            text = text.replace(self._key, "<key>")
        return _DATA_URL.sub("<picture>", _SECRET.sub("<key>", text))[:500]

    async def close(self) -> None:
        """Close the connections."""
        if hasattr(self, "_session"):
            await self._session.close()


def _account() -> dict[str, str]:
    """The organisation and project that OpenAI is to charge, where the environment names them."""
    named = {"OpenAI-Organization": "OPENAI_ORG_ID", "OpenAI-Project": "OPENAI_PROJECT_ID"}
    return {header: value for header, name in named.items() if (value := os.environ.get(name))}


def _wait(error: Exception) -> bool | float:
    """Whether to try again, or after how many seconds exactly."""
    if not isinstance(error, _Transient):
        return False
    return True if error.wait is None else error.wait


def is_loopback(host: str) -> bool:
    """Whether a host name or address is this machine."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that a server asks to wait: `retry-after-ms`, or `retry-after` in seconds or as a date (RFC 9110)."""
    for name, unit in (("retry-after-ms", 1000), ("retry-after", 1)):
        try:
            seconds = float(headers.get(name, "")) / unit
        except ValueError:
            continue
        return seconds if math.isfinite(seconds) and seconds >= 0 else None
    when = email.utils.parsedate_tz(headers.get("retry-after", ""))
    return None if when is None else max(0.0, email.utils.mktime_tz(when) - time.time())


def counter_of(config: ServerConfig) -> Counter:
    """The counter budgets are held by: a tokenizer the user names, else `bytes4`; only the server knows its own.

    Raises:
        UserError: the tokenizer cannot be read.
    """
    return tokenizer_counter(Path(config.tokenizer)) if config.tokenizer else Bytes4()
