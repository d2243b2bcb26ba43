.PHONY: run test check format setup setup-dev clean

run: setup
	@exec .venv/bin/frontdesk serve --demo

test: setup-dev
	.venv/bin/python -m pytest -n 2 --dist loadfile

check: setup-dev
	.venv/bin/ruff format --check .
	.venv/bin/ruff check .
	.venv/bin/mypy
	.venv/bin/lint-imports

format: setup-dev
	.venv/bin/ruff format .
	.venv/bin/ruff check --fix .

setup:
	@scripts/setup requirements.lock

setup-dev:
	@scripts/setup requirements-dev.lock

clean:
	rm -rf .venv
