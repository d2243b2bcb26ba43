"""The Pythons and programs that are named for users and for tests are those that CI has."""

import re
import tomllib
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
WORKFLOWS = ROOT / ".github" / "workflows"
JOBS = yaml.safe_load((WORKFLOWS / "test.yml").read_text())["jobs"]
TESTED = set(JOBS["test"]["strategy"]["matrix"]["python"])
PACKAGES = {"nginx": "nginx-light", "promtool": "prometheus"}  # by program, where they differ
EVERYWHERE = {"systemd-analyze"}


def test_the_pythons_that_are_supported_are_tested() -> None:
    classifiers = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["classifiers"]
    assert {each.rpartition(" ")[2] for each in classifiers if "Python" in each} == TESTED
    image = re.search(r"^ARG BASE=python:(\S+)-slim$", (ROOT / "deploy/image/Dockerfile").read_text(), re.MULTILINE)
    assert image is not None
    named = re.findall(r'python-version: "(.*)"', "".join(path.read_text() for path in WORKFLOWS.iterdir()))
    assert {image[1], *named} <= TESTED


def test_every_program_that_a_deploy_test_needs_is_installed() -> None:
    needed = set()
    for path in (ROOT / "tests" / "deploy").glob("*.py"):
        for programs in re.findall(r"\bneed\((\".*\")\)", path.read_text()):
            needed |= set(re.findall(r'"(.*?)"', programs))
    assert {"buildah", "pgbackrest", "promtool"} <= needed
    commands = " ".join(step.get("run", "") for step in JOBS["deploy-test"]["steps"]).split()
    assert {PACKAGES.get(program, program) for program in needed - EVERYWHERE} <= set(commands)
