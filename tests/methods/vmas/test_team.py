"""What each turn is shown, told and charged for, on scripted readers."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memharness.config import build
from memharness.method import MethodCard
from memharness.methods.vmas import VMAS, prompts
from memharness.methods.vmas.config import VmasConfig
from memharness.methods.vmas.team import UNSEEN
from memharness.methods.vmas.topologies import STATIC
from memharness.reader import Reply, Request
from memharness.types import Answer, BudgetError, Choice, Image, OverWindow, ReaderError, Text, Usage, UserError
from tests.methods.kit import item
from tests.methods.vmas.scripted import Team, asked, prompt

CONTENTS = ("conclusion", "perception", "thinking", "full")


def report(request: Request) -> str:
    """A report whose three parts can be told apart and say which turn they are of; the last turn says `done`."""
    if "Write your report" not in prompt(request):
        return "done"
    n = request.sample + 1
    return f"Perception: saw{n}.\nThinking: mused{n}.\nConclusion: held{n}."


def told(turn: int, content: str) -> set[str]:
    """The words of a report that a content passes on."""
    words = {"conclusion": {"held"}, "perception": {"saw", "held"}, "thinking": {"mused", "held"},
             "full": {"saw", "mused", "held"}}  # fmt: skip
    return {f"{word}{turn}" for word in words[content]}


def heard(text: str) -> set[str]:
    """The words of any report in a prompt."""
    return set(re.findall(r"\b(?:saw|mused|held)\d+", text))


@settings(deadline=None, max_examples=60)
@given(
    st.sampled_from([*STATIC, "dynamic"]), st.integers(1, 10), st.sampled_from(CONTENTS), st.integers(0, 9),
    st.none() | st.integers(1, 10), st.sampled_from(["last", "both"]),
)  # fmt: skip
async def test_messages_are_exactly_the_contents_asked_for(
    topology: str, turns: int, content: str, seed: int, agents: int | None, hub: str
) -> None:
    team = Team(report, topology=topology, turns=turns, content=content, agents=agents, hub=hub)
    team.kit.seed = seed
    answer = await team.answer(asked())
    assert answer.text == "done"
    trace = answer.trace
    assert len(team.log) == turns == len(trace["steps"])
    # in topological order
    order = [turn - 1 for turn in trace["order"]]
    place = {turn: at for at, turn in enumerate(order)}
    assert sorted(order) == list(range(turns))
    assert order[-1] == turns - 1
    assert all(place[u - 1] < place[v - 1] for u, v in trace["edges"])
    for at, (name, request) in zip(order, team.log, strict=True):
        step = trace["steps"][at]
        assert step["agent"] == name
        sources = {u for u, v in trace["edges"] if v == at + 1}
        assert set(step["from"]) == sources
        if step["own"] is not None:
            own = trace["steps"][step["own"] - 1]
            assert own["agent"] == name
            assert place[step["own"] - 1] < place[at]
            sources = sources | {step["own"]}
        assert heard(prompt(request)) == set().union(*(told(source, content) for source in sources))
        assert (step["tokens"]["passed"] > 0) == bool(sources)
        assert step["tokens"]["passed"] <= step["tokens"]["prompt"]
        said = team.log[place[at]][1]
        assert step["tokens"]["prompt"] == sum(
            len(part.text.split()) for part in said.parts() if isinstance(part, Text)
        )
    # per agent, they sum to the whole
    assert trace["tokens"] == sum(
        step["tokens"][kind] for step in trace["steps"] for kind in ("prompt", "visual", "output")
    )
    for name, sums in trace["agents"].items():
        for kind, total in sums.items():
            assert total == sum(step["tokens"][kind] for step in trace["steps"] if step["agent"] == name)


@settings(deadline=None, max_examples=25)
@given(st.sampled_from([*STATIC, "dynamic"]), st.integers(2, 9), st.integers(0, 99))
async def test_a_seed_makes_the_same_team_again(topology: str, turns: int, seed: int) -> None:
    async def once() -> tuple[Answer, list[tuple[str, Request]]]:
        team = Team(report, topology=topology, turns=turns, temperature=0.7)
        team.kit.seed = seed
        return await team.answer(asked()), team.log

    assert await once() == await once()


async def test_one_turn_is_a_single_agent() -> None:
    question = asked(choices=(Choice("A", (Text("a kite"),)),), instruction="Answer with a letter.", picture=True)
    items = [item(0, "kites fly")]
    for topology in (*STATIC, "dynamic"):
        team, single = Team(report, turns=1, topology=topology, items=items), Team(report, "single", items)
        ours, its = await team.answer(question), await single.answer(question)
        assert team.log == single.log
        assert ours.text == its.text == "done"
        assert ours.trace["agents"] == its.trace["agents"]
    assert "Answer with a letter." in prompt(single.log[0][1])


async def test_the_last_turn_alone_reads_the_benchmark_s_own_instruction() -> None:
    team = Team(report, turns=3)
    question = asked(instruction="Reply with one letter.", prefill="The answer is")
    await team.answer(question)
    first, second, last = (request for _, request in team.log)
    assert "Reply with one letter." not in prompt(first) + prompt(second)
    assert (first.prefill, second.prefill, last.prefill) == ("", "", "The answer is")
    assert prompt(last).count("Reply with one letter.") == 1
    assert "Write your report" not in prompt(last)
    assert (first.sampling.max_tokens, last.sampling.max_tokens) == (512, 64)


@pytest.mark.parametrize(
    ("pictures", "seeing"),
    [("all", [1, 2, 3, 4]), ("sources", [1, 2]), ("ends", [1, 2, 4]), ("last", [4]), ("none", [])],
)
async def test_who_sees_pictures(pictures: str, seeing: list[int]) -> None:
    team = Team(report, turns=4, topology="layered", layers=2, pictures=pictures)
    team.config = team.config
    question = asked(picture=True, choices=(Choice("A", (Image("b" * 64, "image/png", 8, 8, "a.png"),)),))
    answer = await team.answer(question)
    sources = [step["turn"] for step in answer.trace["steps"] if not step["from"]]
    assert sources == [1, 2]
    saw = [step["turn"] for step in answer.trace["steps"] if step["pictures"]]
    assert saw == seeing
    for step, (_, request) in zip(answer.trace["steps"], team.log, strict=True):
        images = [part for part in request.parts() if isinstance(part, Image)]
        assert len(images) == step["tokens"]["visual"] == (2 if step["turn"] in seeing else 0)
        assert prompt(request).count(UNSEEN) == (0 if step["turn"] in seeing else 2)


async def test_agents_in_rotation_hear_their_own_earlier_report() -> None:
    team = Team(report, turns=5, agents=2)
    answer = await team.answer(asked())
    assert [step["agent"] for step in answer.trace["steps"]] == ["agent1", "agent2", "agent1", "agent2", "agent1"]
    assert [step["own"] for step in answer.trace["steps"]] == [None, None, 1, 2, 3]
    assert "[Your own earlier report]\nPerception: saw1." in team.prompts()["agent1"][1]
    assert list(team.method.roles()) == ["agent1", "agent2"]


async def test_a_hub_that_hands_out_the_work_takes_two_turns() -> None:
    team = Team(report, turns=4, topology="centralized", hub="both")
    answer = await team.answer(asked())
    assert [step["agent"] for step in answer.trace["steps"]] == ["agent1", "agent2", "agent3", "agent1"]
    assert [step["role"] for step in answer.trace["steps"]] == ["coordinator", "locator", "transcriber", "decider"]
    assert answer.trace["steps"][3]["own"] == 1
    assert heard(team.prompts()["agent1"][1]) == {f"{word}{n}" for word in ("saw", "mused", "held") for n in (1, 2, 3)}


@pytest.mark.parametrize(
    ("said", "agents", "drawn"),
    [
        ("Next: 3", ["agent1", "agent3", "agent2", "agent4"], [3]),  # the third was heard and cannot be named again
        ("Next: 9", None, [2, 3]),
        ("I give way.", None, [2, 3]),
        ("Next: 4", None, [2, 3]),  # the one that decides
    ],
)
async def test_redirect_lets_each_agent_name_the_next(said: str, agents: list[str] | None, drawn: list[int]) -> None:
    team = Team(lambda request: f"{report(request)}\n{said}", topology="random", routes="redirect", turns=4)
    answer = await team.answer(asked())
    names = [step["agent"] for step in answer.trace["steps"]]
    assert sorted(names) == ["agent1", "agent2", "agent3", "agent4"]
    assert (names[0], names[-1]) == ("agent1", "agent4")
    assert agents is None or names == agents
    assert [step["turn"] for step in answer.trace["steps"] if "drawn" in step["flags"]] == drawn
    assert [name for name, _ in team.log] == names
    first = prompt(team.log[0][1])
    assert "You may name: 2 (locator), 3 (transcriber)." in first
    assert "You may name" not in prompt(team.log[2][1])  # the last turn is next, whoever is named
    assert answer.trace["edges"] == [[1, 2], [2, 3], [3, 4]]


async def test_a_team_of_two_redirects_between_what_there_is() -> None:
    team = Team(report, topology="random", routes="redirect", turns=5, agents=2)
    names = [step["agent"] for step in (await team.answer(asked())).trace["steps"]]
    assert names == ["agent1", "agent2", "agent2", "agent2", "agent1"]


# ---------------------------------------------------------------------------------------------------------- extractor


def extracting(request: Request) -> str:
    if "take an agent's report apart" in prompt(request):
        return "Perception: p\nThinking: t\nConclusion: c" if "plain words" in prompt(request) else "no idea"
    return "plain words" if request.sample == 0 and "Write your report" in prompt(request) else report(request)


async def test_an_extractor_takes_reports_apart() -> None:
    team = Team(extracting, turns=3, content="perception", extract="reader")
    assert list(team.method.roles()) == ["agent1", "agent2", "agent3", "extractor"]
    answer = await team.answer(asked())
    first, second, _ = answer.trace["steps"]
    assert first["sections"] == {"perception": "p", "thinking": "t", "conclusion": "c"}
    assert first["flags"] == []
    assert "[Agent 1, observer]\nPerception: p\nConclusion: c" in team.prompts()["agent2"][0]
    # an extraction in no form leaves what the rule found
    assert second["flags"] == ["extraction_failed"]
    assert "Perception: saw2.\nConclusion: held2." in team.prompts()["agent3"][0]
    spent = answer.trace["agents"]["extractor"]
    assert spent["output"] == 6 + 2
    assert spent["prompt"] == first["extraction"]["prompt"] + second["extraction"]["prompt"] > 0
    assert answer.trace["tokens"] == sum(
        sums[kind] for sums in answer.trace["agents"].values() for kind in ("prompt", "visual", "output")
    )


@pytest.mark.parametrize(("options", "asks"), [({"content": "full"}, False), ({"turns": 1}, False), ({}, True)])
async def test_nothing_is_extracted_where_nothing_is_taken_apart(options: dict[str, Any], asks: bool) -> None:
    team = Team(extracting, **({"turns": 2, "content": "thinking", "extract": "reader"} | options))
    await team.answer(asked())
    assert ("extractor" in team.method.roles()) == asks == any(name == "extractor" for name, _ in team.log)


# ------------------------------------------------------------------------------------------------------ what goes wrong


async def test_malformed_replies_are_flagged_and_the_team_goes_on() -> None:
    said = iter(["", "babble\nmore babble", "<think>never closed", "Conclusion: A", "B"])

    def script(request: Request) -> Reply:
        return Reply(next(said), Usage(output=1), finish="length" if request.sample == 2 else "stop")

    team = Team(script, turns=5, topology="linear", content="conclusion")
    answer = await team.answer(asked())
    assert answer.text == "B"
    assert answer.trace["flags"] == [
        "turn 1: empty", "turn 2: unstructured", "turn 2: no_conclusion",
        "turn 3: empty", "turn 3: truncated", "turn 3: unclosed_thinking",
    ]  # fmt: skip
    told = [prompt(request) for _, request in team.log]
    assert "[Agent 1, observer]\n(nothing)" in told[1]
    assert "Conclusion: more babble" in told[2]
    assert "(nothing)" in told[3]


@pytest.mark.parametrize(
    ("last", "flags"),
    [(Reply("", Usage(), finish="length"), ["turn 2: empty", "turn 2: truncated"]),
     (Reply("I cannot help.", Usage(), finish="refused"), ["turn 2: refused"])],
)  # fmt: skip
async def test_a_last_turn_that_says_nothing_is_flagged(last: Reply, flags: list[str]) -> None:
    team = Team(lambda request: report(request) if "Write your report" in prompt(request) else last, turns=2)
    answer = await team.answer(asked())
    assert answer.text == last.text
    assert answer.trace["flags"] == flags


async def test_a_prompt_over_the_window_names_its_turn() -> None:
    def script(request: Request) -> str:
        if len(prompt(request).split()) > 170:
            raise OverWindow("the prompt has too many tokens")
        return report(request)

    team = Team(script, turns=9, topology="complete")
    with pytest.raises(OverWindow, match=r"turn \d of 9 \(\w+\): the prompt has too many tokens"):
        await team.answer(asked())


async def test_a_failing_reader_stops_the_turns_beside_it_and_keeps_its_cause() -> None:
    def script(request: Request) -> str:
        if request.sample == 1:
            raise ReaderError("broken") from ValueError("why")
        return report(request)

    team = Team(script, turns=4, topology="centralized")
    with pytest.raises(ReaderError, match="broken") as raised:
        await team.answer(asked())
    assert isinstance(raised.value.__cause__, ValueError)
    assert all("Write your report" in prompt(request) for _, request in team.log)  # nobody decided


@pytest.mark.parametrize(
    ("roles", "words"),
    [("observr", r"observr is no role \(did you mean observer\?\); there are: observer, locator"),
     ("", "no role is named"), (" , ", "no role is named")],
)  # fmt: skip
def test_a_role_that_nobody_wrote_is_refused(roles: str, words: str) -> None:
    with pytest.raises(UserError, match=words):
        Team(report, roles=roles)


@pytest.mark.parametrize(
    ("options", "words"),
    [({"turns": 11}, "-M turns=11"), ({"topology": "ring"}, "-M topology='ring'"), ({"content": "all"}, "-M content"),
     ({"agents": 0}, "-M agents=0"), ({"turn": 3}, "did you mean turns")],
)  # fmt: skip
def test_options_are_held_to_what_there_is(options: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError, match=words):
        build(VmasConfig, options, "-M", "vmas")


# ----------------------------------------------------------------------------------------------------------- memories


async def test_agents_are_shown_the_memory() -> None:
    items = [item(n, f"fact{n} about {word}") for n, word in enumerate(["kites", "boats", "trees"])]
    team = Team(report, turns=2, items=items)
    answer = await team.answer(asked())
    assert answer.readout is not None
    assert [pointer.item for pointer in answer.readout.evidence] == ["i0", "i1", "i2"]
    for _, request in team.log:
        assert [word in prompt(request) for word in ("fact0", "fact1", "fact2")] == [True] * 3
    with pytest.raises(BudgetError, match="all 3 items cost more than the budget; -M memory=bm25"):
        await team.answer(asked(), items=2)
    ranked = Team(report, turns=2, items=items, memory="bm25")
    answer = await ranked.answer(asked("boats"), items=1)
    assert answer.readout is not None
    assert [pointer.item for pointer in answer.readout.evidence] == ["i1"]
    assert all("fact1" in prompt(request) and "fact0" not in prompt(request) for _, request in ranked.log)


# ------------------------------------------------------------------------------------------------------------- config


def test_presets_fill_what_was_left_open() -> None:
    def read(**options: str) -> tuple[Any, ...]:
        config = Team(report, **options).config
        return config.hub, config.routes, config.extract

    assert read() == ("last", "drawn", "sections")
    assert read(preset="paper-literal") == ("both", "redirect", "reader")
    assert read(preset="paper-literal", routes="drawn") == ("both", "drawn", "reader")


def test_the_manifest_says_that_dynamic_is_its_fallback() -> None:
    untrained = VMAS(build(VmasConfig, {"topology": "dynamic", "fallback": "layered"}, "-M", "vmas"))
    assert untrained.features()["dynamic_fallback_layered"]
    assert not untrained.features()["dynamic_trained"]
    assert not any(VMAS(VmasConfig()).features().values())


async def test_the_record_says_that_dynamic_is_its_fallback() -> None:
    trace = (await Team(report, topology="dynamic", turns=3, fallback="linear").answer(asked())).trace
    assert (trace["topology"], trace["designed"], trace["fallback"]) == ("dynamic", False, "linear")
    assert trace["edges"] == [[1, 2], [2, 3]]


def test_every_role_and_prompt_is_written() -> None:
    assert {"observer", "reasoner", "coordinator"} <= set(prompts.roles())
    assert all(text.startswith("You are the ") and text.endswith(".") for text in prompts.roles().values())
    assert isinstance(VMAS.card, MethodCard)
    assert len(VMAS.card.roles) == 11
