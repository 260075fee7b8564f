"""The documents are true: every command and code block in them is run, every link leads somewhere.

Python blocks of a page are run in order in one namespace, in a folder that holds `scene.xml`, the
gripper of the gallery, and those blocks of the page that have the name of a file as caption. Blocks
that a page needs and does not show stand in a comment, ``.. hidden python`` in a page and ``<!--
hidden python`` in the README. Shell commands are run in a folder of that kind, except those of
`NOT_RUN`, each with its reason; of these, options are checked against the command's help. Commands
that draw are run by a slow test.
"""

from __future__ import annotations

import contextlib
import doctest
import itertools
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import textwrap
import tomllib
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from holdfast.tools import video
from holdfast.tools.render import NoPictureError

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
PAGES = sorted((ROOT / "docs").glob("*.rst"))
DOCUMENTS = [README, *PAGES]
EXAMPLES = sorted([*(ROOT / "examples").glob("*.py"), *(ROOT / "examples/gallery").glob("*.py")])
OTHER_EXAMPLES = {"examples/grasps/grasps.py": "2000 cases; tests/batch/test_sweep.py runs twelve"}
QUICK = {"examples/gymnasium_env.py": {"steps": 8, "count": 2, "rounds": 1}}
SHELL = ("bash", "console", "shell", "sh")
OUTPUT = ("text", "none", "xml", "json", "pycon", "csv", "yaml", "toml")

NOT_RUN = {
    "make": "makes its own environment; each target is what CI and the other tests run",
    ". .venv/bin/activate": "the environment that `make demo` creates",
    "pip install": "needs a package index",
    "python -m pip": "needs a package index",
    "git clone": "needs a network",
    "sudo apt": "needs root",
    "apt-get": "needs root",
    "apt install": "needs root",
    "holdfast demo": "slow; run by tests/cli",
    "holdfast reproduce": "takes a quarter of an hour; run with --quick by tests/experiments",
    "holdfast view": "serves until it is stopped; run by the tests of the viewer",
    "holdfast bench": "measures for minutes; run by tests/cli",
    "holdfast warmup": "compiles for minutes where there is no cache; run by its own tests",
    "python benchmarks/": "benchmarks take minutes; run by `make bench`",
}
"""Beginnings of commands that are not run here, and why."""


@dataclass(frozen=True)
class Block:
    """A block of code in a document."""

    language: str
    text: str
    line: int
    name: str = ""  # caption: the file that it is


def blocks(document: Path) -> list[Block]:
    """All blocks of a document in order, hidden ones too."""
    text = document.read_text(encoding="utf-8")
    found = _markdown_blocks(text) if document.suffix == ".md" else _rst_blocks(text)
    return sorted(found, key=lambda block: block.line)


def _markdown_blocks(text: str) -> Iterator[Block]:
    fences = re.finditer(r"^```(\w*)\n(.*?)^```$", text, flags=re.M | re.S)
    hidden = re.finditer(r"^<!-- hidden (python)\n(.*?)^-->$", text, flags=re.M | re.S)
    for match in (*fences, *hidden):
        yield Block(match[1], match[2], text.count("\n", 0, match.start()) + 1)


def _rst_blocks(text: str) -> Iterator[Block]:
    heads = re.compile(r"^( *)\.\. (?:(?:code-block|code)::|hidden) *(\w*) *$")
    lines = text.splitlines()
    for number, line in enumerate(lines):
        head = heads.match(line)
        if head is None:
            continue
        body = []
        for below in lines[number + 1 :]:
            if below.strip() and len(below) - len(below.lstrip()) <= len(head[1]):
                break
            body.append(below)
        options = [each.strip() for each in body if re.match(r"^ +:[\w-]+:", each)]
        kept = [each for each in body if not re.match(r"^ +:[\w-]+:", each)]
        caption = next((each[10:] for each in options if each.startswith(":caption: ")), "")
        code = textwrap.dedent("\n".join(kept)).strip() + "\n"
        yield Block(head[2], code, number + 1, caption)


def names(paths: list[Path]) -> list[str]:
    return [str(path.relative_to(ROOT)) for path in paths]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """An empty folder with the scene that pages speak of; the process is in it meanwhile."""
    gallery = ROOT / "examples" / "gallery" / "gripper.py"
    (tmp_path / "scene.xml").write_text(runpy.run_path(str(gallery))["SCENE"])
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    with contextlib.chdir(tmp_path):
        yield tmp_path


# --- code ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("document", DOCUMENTS, ids=names(DOCUMENTS))
def test_python_blocks_run(document: Path, folder: Path) -> None:
    namespace: dict[str, object] = {"__name__": "__main__"}
    for block in blocks(document):
        if block.name:
            (folder / block.name).write_text(block.text)
        if block.language == "python":
            padding = "\n" * block.line  # so that a traceback shows the line of the document
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                exec(compile(padding + block.text, str(document), "exec"), namespace)


@pytest.mark.parametrize("document", PAGES, ids=names(PAGES))
def test_interactive_blocks_print_what_they_say(document: Path) -> None:
    """Those of the README are doctests of `make test` already."""
    text = "".join(block.text + "\n" for block in blocks(document) if block.language == "pycon")
    test = doctest.DocTestParser().get_doctest(text, {}, document.name, str(document), 0)
    failed, _ = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test)
    assert failed == 0


@pytest.mark.parametrize("example", EXAMPLES, ids=names(EXAMPLES))
def test_examples_run(example: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each asserts what it claims."""
    quick = QUICK.get(names([example])[0])
    namespace = runpy.run_path(str(example), run_name="example" if quick else "__main__")
    if quick:
        namespace["main"](**quick)
    assert capsys.readouterr().out


def test_no_example_escapes() -> None:
    every = set(names(sorted((ROOT / "examples").rglob("*.py"))))
    assert every - set(names(EXAMPLES)) <= set(OTHER_EXAMPLES)


def test_no_block_escapes() -> None:
    """A language that is neither run nor output would never be looked at."""
    known = {"python", *SHELL, *OUTPUT}
    odd = [(names([d])[0], b.line, b.language) for d in DOCUMENTS for b in blocks(d)
           if b.language not in known]  # fmt: skip
    assert not odd
    commands = re.compile(
        r"^(\$ )?(holdfast [a-z]+ |make [a-z]+$|pip install |python [\w/]+\.py)", re.M
    )
    hidden = [(names([d])[0], b.line) for d in DOCUMENTS for b in blocks(d)
              if b.language in OUTPUT and commands.search(b.text)]  # fmt: skip
    assert not hidden, "commands in blocks of output are not run; use a bash block"


def test_blocks_are_found() -> None:
    """The tests above have something to do."""
    for document in (README, ROOT / "docs" / "install.rst"):
        languages = {block.language for block in blocks(document)}
        assert "python" in languages and languages & set(SHELL)


# --- commands ------------------------------------------------------------------------------------


def commands(document: Path) -> list[str]:
    """Commands of a document, one per line; continued lines are joined, comments left out."""
    found = []
    for block in blocks(document):
        if block.language in SHELL:
            text = block.text.replace("\\\n", " ")
            for line in text.splitlines():
                command = " ".join(shlex.split(line.removeprefix("$ "), comments=True, posix=False))
                if command:
                    found.append(command)
    return found


def draws(command: str) -> bool:
    return " --video" in command or " --picture" in command


def reason_not_run(command: str) -> str:
    if draws(command):
        return "needs OpenGL and takes long; run by a slow test"
    return next((why for begin, why in NOT_RUN.items() if command.startswith(begin)), "")


ALL_COMMANDS = [(document, command) for document in DOCUMENTS for command in commands(document)]
RUN = sorted({command for _, command in ALL_COMMANDS if not reason_not_run(command)})
READ = sorted({
    command for _, command in ALL_COMMANDS
    if reason_not_run(command) and command.startswith("holdfast ")
})  # fmt: skip


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which `holdfast` and `python` are those of the tests."""
    bin = tmp_path_factory.mktemp("bin")
    for name, call in (("holdfast", "-m holdfast"), ("python", "")):
        (bin / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {call} "$@"\n')
        (bin / name).chmod(0o755)
    source = os.pathsep.join(filter(None, [str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]))
    return os.environ | {"PATH": f"{bin}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": source}


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for all commands: some read what others write."""
    folder = tmp_path_factory.mktemp("run")
    gallery = ROOT / "examples" / "gallery" / "gripper.py"
    (folder / "scene.xml").write_text(runpy.run_path(str(gallery))["SCENE"])
    (folder / "examples").symlink_to(ROOT / "examples")
    return folder


@pytest.mark.parametrize("document", DOCUMENTS, ids=names(DOCUMENTS))
def test_commands_run(document: Path, run_folder: Path, shell: dict[str, str]) -> None:
    for block in blocks(document):
        if block.name:
            (run_folder / block.name).write_text(block.text)
    for command in commands(document):
        if not reason_not_run(command) and command not in run_folder_done(run_folder):
            run(command, run_folder, shell)
            with (run_folder / ".done").open("a") as file:
                file.write(command + "\n")


def run(command: str, folder: Path, shell: dict[str, str]) -> None:
    done = subprocess.run(
        ["bash", "-c", command], cwd=folder, env=shell, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"


DRAWN = sorted({(document, command) for document, command in ALL_COMMANDS if draws(command)})


@pytest.mark.slow
@pytest.mark.parametrize(("document", "command"), DRAWN, ids=[command for _, command in DRAWN])
def test_commands_that_draw_run(
    document: Path, command: str, folder: Path, shell: dict[str, str]
) -> None:
    try:
        video.check_drawing(Path("run.mp4"))
    except NoPictureError as error:
        if os.environ.get("CI") == "true":
            pytest.fail(str(error))
        pytest.skip(str(error))
    for block in blocks(document):
        if block.name:
            (folder / block.name).write_text(block.text)
    run(command, folder, shell)
    words = shlex.split(command)
    for option, file in itertools.pairwise(words):
        if option in ("--video", "--picture"):
            assert (folder / file).stat().st_size > 1000


def run_folder_done(folder: Path) -> set[str]:
    """Commands that were run already, on another page."""
    file = folder / ".done"
    return set(file.read_text().splitlines()) if file.exists() else set()


@pytest.mark.parametrize("command", READ)
def test_options_of_other_commands_exist(command: str, shell: dict[str, str]) -> None:
    words = shlex.split(command)
    done = subprocess.run(
        [*words[:2], "--help"], env=shell, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, f"holdfast has no command {words[1]}"
    for word in words[2:]:
        if word.startswith("--"):
            assert word.split("=")[0] in done.stdout, f"{command}: no option {word}"


def test_extras_exist() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    text = (ROOT / "docs" / "install.rst").read_text(encoding="utf-8")
    (table,) = re.findall(r"\* - extra\n(.*?)\n\n", text, flags=re.S)
    listed = set(re.findall(r"``([a-z]+)``", "\n".join(re.findall(r"^ +\* - .*$", table, re.M))))
    assert listed == set(project["optional-dependencies"]) - {"models"}  # benchmarks' own
    for document in DOCUMENTS:
        text = document.read_text(encoding="utf-8")
        for names_of_extras in re.findall(r"pip install [^\n]*\[([a-z,]+)\]", text):
            assert set(names_of_extras.split(",")) <= set(project["optional-dependencies"])


def test_make_targets_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.M))
    named = {c.split()[1] for _, c in ALL_COMMANDS if c.startswith("make ")}
    assert named and named <= targets


# --- links ---------------------------------------------------------------------------------------

MARKDOWN = [README, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", ROOT / "benchmarks/README.md"]


@pytest.mark.parametrize("document", MARKDOWN, ids=names(MARKDOWN))
def test_markdown_links(document: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", document.read_text(encoding="utf-8"), flags=re.M | re.S)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        assert not path or (document.parent / path).exists(), f"{document.name}: {target}"
        if anchor:
            other = (document.parent / path).read_text(encoding="utf-8") if path else text
            headings = re.findall(r"^#+ (.*)$", other, flags=re.M)
            slugs = [re.sub(r"[^\w -]", "", h.lower()).replace(" ", "-") for h in headings]
            assert anchor in slugs, f"{document.name}: {target}"


@pytest.mark.parametrize("document", PAGES, ids=names(PAGES))
def test_links_between_pages(document: Path) -> None:
    """What Sphinx would find, too; but not everyone builds the pages."""
    text = document.read_text(encoding="utf-8")
    for target in re.findall(r":doc:`(?:[^`<]*<)?([^`>]+)>?`", text):
        assert (document.parent / f"{target}.rst").exists(), target
    every = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    labels = set(re.findall(r"^\.\. _([^:]+):$", every, flags=re.M))
    for target in re.findall(r":ref:`(?:[^`<]*<)?([^`>]+)>?`", text):
        assert target in labels, target
    for kind, target in re.findall(r"\.\. (image|figure|include|literalinclude):: (\S+)", text):
        if not target.startswith("_build/"):
            assert (document.parent / target).exists(), f"{kind} {target}"


def test_every_page_is_in_the_contents() -> None:
    index = (ROOT / "docs" / "index.rst").read_text(encoding="utf-8")
    listed = set(re.findall(r"^ {3}([a-z_]+)$", index, flags=re.M))
    assert {page.stem for page in PAGES} - {"index"} == listed


@pytest.mark.parametrize("document", [*MARKDOWN, *PAGES], ids=names([*MARKDOWN, *PAGES]))
def test_addresses_are_well_formed(document: Path) -> None:
    """Nothing is fetched: tests work without a network."""
    for address in re.findall(r"https?://[^\s)>`\"']+", document.read_text(encoding="utf-8")):
        parts = urlsplit(address.rstrip(".,;:"))
        local = parts.hostname in ("localhost", "127.0.0.1")
        assert local or (parts.scheme == "https" and "." in (parts.hostname or "")), address


# --- pages ---------------------------------------------------------------------------------------


@pytest.mark.slow
def test_pages_build_without_a_warning(tmp_path: Path) -> None:
    pytest.importorskip("furo", reason="needs the extra docs")
    copied = tmp_path / "holdfast"
    for name in ("docs", "examples"):
        shutil.copytree(ROOT / name, copied / name, ignore=shutil.ignore_patterns("_build"))
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html",
         str(copied / "docs"), str(tmp_path / "html")],
        capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    check_links(tmp_path / "html")


def check_links(folder: Path) -> None:
    """Links between built pages lead somewhere, and pages load nothing from other machines."""
    texts = {page.name: page.read_text(encoding="utf-8") for page in folder.glob("*.html")}
    anchors = {name: set(re.findall(r'\bid="([^"]+)"', text)) for name, text in texts.items()}
    for name, text in texts.items():
        loaded = re.findall(r'<(?:script|img|iframe)\b[^>]*\bsrc="([^"]+)"', text)
        loaded += re.findall(r'<link\b[^>]*\brel="stylesheet"[^>]*\bhref="([^"]+)"', text)
        assert not [address for address in loaded if "//" in address], name
        for target in re.findall(r'<a\b[^>]*\bhref="([^"]+)"', text):
            if target.startswith("https://"):
                continue
            page, _, anchor = unquote(target).partition("#")
            page = page or name
            assert (folder / page).exists(), f"{name}: {target}"
            assert not anchor or anchor in anchors.get(page, {anchor}), f"{name}: {target}"


def test_generated_tables_have_no_bullets_in_cells() -> None:
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        from publish import to_rst
    finally:
        sys.path.pop(0)
    text = to_rst("| a | b |\n| --- | ---: |\n| - | 1 |\n| `x` | - |\n")
    assert text.splitlines()[4:] == [
        "   * - a", "     - b", "   * - \\-", "     - 1", "   * - ``x``", "     - \\-",
    ]  # fmt: skip
    for page in (*PAGES, *(ROOT / "docs" / "_generated").glob("*.txt")):
        assert not re.search(r"^ +[* ] - [-+*]$", page.read_text(encoding="utf-8"), flags=re.M)
