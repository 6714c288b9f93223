"""What stays behind is what git would ignore: compared with git itself on random trees and random ignore files."""

import os
import subprocess
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from crucible.client.package import pack
from crucible.client.source import files_under

NAMES = [
    "a", "b", "ab", "abc", "a.py", "b.log", "Ab", "é", "a b", "a ", "[x]", "#c", "!d", "x-y", "-", "]", "*", "0",
    "a\tb",
]  # fmt: skip
TOKENS = [
    "a", "b", "ab", "abc", ".py", ".log", "é", " ", "/", "/", "*", "**", "***", "?", "!", "#", "\\", "\\ ", "\\*", "-",
    "[ab]", "[!a]", "[^a-b]", "[a-c]", "[]x]", "[[:alpha:]]", "[[:space:]]", "[![:punct:]]", "[[:bad:]]", "[", "]",
    "[a\\]]", "**/", "/**", "/**/", "*.py", "\r", "[[:digit:]-a]", "[x-", "[/]", "[[:]", "0", "x-y",
]  # fmt: skip

paths = st.lists(st.sampled_from(NAMES), min_size=1, max_size=4).map("/".join)
patterns = st.lists(st.sampled_from(TOKENS), min_size=0, max_size=6).map("".join) | paths
lines = st.lists(patterns, max_size=6).map("\n".join)
trees = st.lists(paths, min_size=1, max_size=25)


def build(root: Path, tree: list[str], ignores: dict[str, str]) -> list[str]:
    """The files of `tree` that could be made (a name cannot be both file and folder), with ignore files in place."""
    made = []
    for name in sorted(set(tree)):
        path = root / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"")
        except OSError:
            continue
        made.append(name)
    for folder, text in ignores.items():
        if (root / folder).is_dir():
            (root / folder / ".gitignore").write_bytes(text.encode())
            made.append(os.path.normpath(f"{folder}/.gitignore"))
    return made


def kept_by_git(root: Path, names: list[str]) -> set[str]:
    environment = {
        **os.environ,
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_NOSYSTEM": "1",
        "XDG_CONFIG_HOME": "/nonexistent",
    }
    done = subprocess.run(
        ["git", "check-ignore", "--no-index", "-z", "--stdin"],
        cwd=root,
        input="\0".join(names).encode() + b"\0",
        env=environment,
        capture_output=True,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr
    return set(names) - {os.fsdecode(name) for name in done.stdout.split(b"\0")}


def make_repository(root: Path) -> None:
    """As little as git takes for one; `git init` costs more than the rest of an example."""
    for folder in ("objects", "refs"):
        (root / ".git" / folder).mkdir(parents=True)
    (root / ".git/HEAD").write_text("ref: refs/heads/main\n")


@given(trees, lines, lines, st.sampled_from(["a", "b", "ab", "a/b"]))
@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@example(["foo/x/bar", "foobar", "foo1/bar", "foo/bar"], "foo**/bar", "", "a")
@example(["a/b/c", "a/c", "a/b"], "a/**/c\n!a/b/c", "", "a")
@example(["a ", "a", "a b"], "a\\ \n", "", "a")
@example(["a/b", "a/c"], "a/*\n!a/b", "", "a")
@example(["a/b", "b"], "/a\n!a/b", "", "a")
@example(["a/b.log", "b.log"], "*.log", "!b.log", "a")
@example(["a.py", "é"], "\ufeffa.py\n?", "", "a")
@example(["aba", "aab"], "*a\n", "", "b")
def test_what_is_shipped_is_what_git_does_not_ignore(tree: list[str], top: str, inner: str, folder: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        make_repository(root)
        names = build(root, tree, {".": top, folder: inner})
        assert {file.name for file in files_under(root)} == kept_by_git(root, names)


@given(trees, lines)
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_the_same_tree_gives_the_same_digest(tree: list[str], top: str) -> None:
    digests = set()
    for order in (tree, tree[::-1]):
        with tempfile.TemporaryDirectory() as name:
            root = Path(name)
            build(root, order, {".": top})
            (root / ".crucibleignore").write_text("!/always\n")
            (root / "always").write_text("x")
            with pack(root) as package:
                digests.add(package.digest)
    assert len(digests) == 1
