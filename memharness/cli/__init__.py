"""The `memharness` command. Its help imports nothing; a command imports its own module and no other."""

import sys

from memharness import __version__

COMMANDS = {  # name: where it is, and its one line in the help
    "run": ("memharness.cli.run:run", "Run a method on a benchmark with a reader, or go on with a run."),
    "list": ("memharness.cli.look:list_plugins", "List what is installed: methods, benchmarks, readers and so on."),
    "show": (
        "memharness.cli.look:show",
        "Show the card of a plug-in, the summary of a run, or the floors of a benchmark.",
    ),
    "score": ("memharness.cli.score:score", "Score a run again, without reading again."),
    "evaluate": ("memharness.cli.score:evaluate", "Score someone else's predictions with the official metrics."),
    "judge": ("memharness.cli.judge:judge", "Judge a run's answers with a rubric; two judges give their agreement."),
    "calibrate": ("memharness.cli.judge:calibrate", "Measure a judge on a bank of right and wrong answers."),
    "verify": ("memharness.cli.score:verify", "Recompute every figure of a run or a bundle from its records."),
    "parity": ("memharness.cli.parity:parity", "Ask two back ends of one model the same questions, and compare."),
    "compare": ("memharness.cli.compare:compare", "Compare runs with a baseline, question by question."),
    "cuts": ("memharness.cli.cuts:cuts", "Show scores by parts of the benchmark, beside floors on the same questions."),
    "leaderboard": ("memharness.cli.board:leaderboard", "Put runs into one table, on screen and as files."),
    "plot": ("memharness.cli.plot:plot", "Draw runs: score against cost, budget, category; objective traces."),
    "view": ("memharness.cli.view:view", "Write runs as pages: one folder that opens in a browser, without a server."),
    "regress": ("memharness.cli.regress:regress", "Hold runs against a baseline; exit with 1 where a score slips."),
    "export": ("memharness.cli.export:export", "Write a run for pandas, Hugging Face datasets or inspect_ai."),
    "bundle": ("memharness.cli.bundle:bundle", "Put a run into one file that `verify` accepts anywhere."),
    "train": ("memharness.cli.train:train", "Train the models of a method."),
    "data": ("memharness.cli.data:data", "Prepare, check or locate a benchmark's data."),
    "episodic": ("memharness.cli.episodic:episodic", "Check, repair, export or import an episodic visual memory."),
    "serve": ("memharness.cli.serve:serve", "Serve a model with vLLM behind the OpenAI API."),
    "doctor": ("memharness.cli.doctor:doctor", "Say what is installed and works, and what to do about the rest."),
}
HELP = """\
Usage: memharness COMMAND [OPTIONS]

Any agent-memory method, on any memory benchmark, with any frozen reader.

Commands:
{commands}

Options:
  --version    Show the version.
  -h, --help   Show this help; `memharness COMMAND --help` shows a command's.

Plug-ins may bring more commands: `memharness list commands`.
A first run: memharness run --method graphmemix --bench atm --reader extractive
"""


def main() -> None:
    """Run the command line and exit with its code."""
    sys.exit(command_line(sys.argv[1:]))


def command_line(words: list[str]) -> int:
    """Run a command line.

    Args:
        words: what follows `memharness`.

    Returns:
        0 ok; 1 the run finished with too many failures, or figures differ; 2 a user's mistake; 130 interrupted.
    """
    if not words or words[0] in ("-h", "--help"):
        sys.stdout.write(HELP.format(commands="\n".join(f"  {name:12} {text}" for name, (_, text) in COMMANDS.items())))
        return 0
    if words[0] == "--version":
        sys.stdout.write(f"memharness {__version__}\n")
        return 0
    from memharness.cli.app import run  # typer, only now

    return run(words)
