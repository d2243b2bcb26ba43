.PHONY: run test check format generate catalogue adding-test bench bench-quick audit help setup setup-dev clean heavy crash-test cuts-test simulation-test fuzz soak nodes-test citus-test attack-test property-test mcp-conformance fhir-test client-test browser-test firefox-test screenshots checker-test deploy-test proof

unexport PYTHONDONTWRITEBYTECODE  # where it is set, every process would compile all modules and tests anew
# Several suites share the cores, so that a test may take long.
HEAVY = .venv/bin/python -m pytest -m heavy --timeout 900

run: setup ## sets everything up and serves the demo practice on port 8080 (or FRONTDESK_PORT)
	@exec .venv/bin/frontdesk serve --demo

test: setup-dev ## sets everything up and runs the tests against a real PostgreSQL
	.venv/bin/python -m pytest -n 4 --dist loadfile --no-loadscope-reorder

check: setup-dev ## format, lint, strict types, import rules
	.venv/bin/ruff format --check .
	.venv/bin/ruff check .
	.venv/bin/mypy
	.venv/bin/mypy --config-file clients/python/pyproject.toml
	.venv/bin/lint-imports

format: setup-dev ## fixes format and lint where it can
	.venv/bin/ruff format .
	.venv/bin/ruff check --fix .

generate: setup-dev ## after a change of operations, codes or the practice file: client, tool snapshots, schema and reference
	.venv/bin/python clients/python/generate.py
	.venv/bin/python -m tests.doors.tool_snapshots
	.venv/bin/python -m tests.practice_file.reference

catalogue: setup-dev ## after a change of the console's texts: collects them for translators
	.venv/bin/python -m tests.console.catalogue

heavy: attack-test crash-test cuts-test simulation-test fuzz soak nodes-test checker-test proof property-test mcp-conformance fhir-test client-test browser-test firefox-test adding-test deploy-test ## all heavier suites below

crash-test: setup-dev ## kills server, workers and database, also under load; the long state machine; DIALOGUES=10000 without a yes
	$(HEAVY) tests/crash tests/engine tests/cli tests/console

nodes-test: setup-dev ## several nodes under load: rolling restarts, fail-over of PostgreSQL, logins with few rights (pgbouncer and patroni optional)
	$(HEAVY) tests/nodes

CITUS_TESTS ?= tests/acceptance/test_booking_flow.py tests/engine/test_lifecycle_machine.py tests/engine/test_audit.py tests/engine/test_consent.py \
	tests/engine/test_confirmation.py tests/engine/test_housekeeping.py tests/security/test_audit_tampering.py \
	tests/security/test_isolation_of_operations.py tests/security/test_isolation_of_tables.py tests/webhooks/test_delivery.py \
	tests/webhooks/test_endpoints.py tests/webhooks/test_failing_endpoints.py tests/webhooks/test_old_events.py tests/webhooks/test_queues.py \
	tests/console/test_isolation.py tests/console/test_bookings.py tests/console/test_arrivals.py tests/console/test_audit.py \
	tests/systems/test_changed_calendars.py
citus-test: setup-dev ## on a Citus cluster, by its coordinator's address: DATABASE=postgresql://postgres@HOST:5432/postgres
	@test -n "$(DATABASE)" || { echo "Name a cluster: make citus-test DATABASE=postgresql://postgres@HOST:5432/postgres"; exit 2; }
	CITUS_DATABASE="$(DATABASE)" .venv/bin/python -m pytest -m "not heavy and not one_server" $(CITUS_TESTS)
	CITUS_DATABASE="$(DATABASE)" $(HEAVY) -s tests/citus

cuts-test: setup-dev ## every write with its connections (PostgreSQL, HTTP, FHIR) cut at every message (FHIR and rarer faults: CUT_EVERY=1)
	$(HEAVY) tests/proof/cuts

simulation-test: setup-dev ## webhooks, rate limiter, reconciler and answer cache in simulated time; SEEDS=1000 of each
	$(HEAVY) tests/proof/simulation

checker-test: setup-dev ## the checker of histories finds every planted bug, and checks a million operations
	$(HEAVY) -rP tests/proof/test_checker.py tests/proof/test_planted_bugs.py

MINUTES ?= 10
proof: setup-dev ## clients at two nodes while everything fails, then every answer is checked: MINUTES=10 SEED=any
	.venv/bin/python -m tests.proof.proof --minutes $(MINUTES) $(if $(SEED),--seed $(SEED)) $(if $(BESIDE_OTHERS),--beside-others)

fuzz: setup-dev ## coverage-guided fuzzing of every parser that strangers reach, for a minute or INPUTS=10000000; SEED=any
	.venv/bin/python -m tests.proof.fuzz.run $(if $(INPUTS),--inputs $(INPUTS),--seconds 60) $(if $(SEED),--seed $(SEED))

soak: setup-dev ## a steady load for ten minutes (MINUTES=, HOURS=): memory, files, bloat, WAL, plans and p99 stay flat
	.venv/bin/python -m tests.proof.soak --minutes $(if $(HOURS),$$(($(HOURS) * 60)),$(or $(MINUTES),10)) $(if $(BESIDE_OTHERS),--beside-others)

PROPERTY_TIMES ?= 20
property-test: setup-dev ## the property tests with PROPERTY_TIMES=20 as many examples
	PROPERTY_TIMES=$(PROPERTY_TIMES) .venv/bin/python -m pytest -n 2 -m property

attack-test: setup-dev ## a million forged ids and tokens; a short and a deep schemathesis run
	$(HEAVY) tests/security tests/doors

mcp-conformance: setup-dev ## the official MCP conformance suites, and clients that sign in (needs Node, npm and chromium)
	$(HEAVY) tests/mcp

fhir-test: setup-dev ## the FHIR adapter against a server from npm packages, the FHIR server with a validator (needs Node and npm)
	$(HEAVY) -n 2 tests/fhir tests/systems tests/fhir_server

client-test: setup-dev ## the examples, and code generated from the OpenAPI document (needs Node and npm)
	$(HEAVY) tests/clients tests/guides

adding-test: setup-dev ## adds an operation and a feature to a copy of the tree, with the steps of CONTRIBUTING.md
	$(HEAVY) tests/architecture

browser-test: setup-dev ## the console in a real browser: every flow, accessibility, both themes (needs chromium; firefox optional)
	$(HEAVY) tests/browser

FIREFOX_TESTS ?= tests/browser
firefox-test: setup-dev ## the same tests in Debian's Firefox, or FIREFOX_TESTS=some of them (needs firefox-esr)
	TEST_BROWSER=firefox $(HEAVY) $(FIREFOX_TESTS)

screenshots: setup-dev ## every page of the console in both themes, and those of the README (needs chromium)
	PYTHONPATH=clients/python/src .venv/bin/python -m tests.browser.screenshots

deploy-test: setup-dev ## the wheel as installed, image, proxies, unit, manifests and alerts (needs root and the Debian packages of .ci/run)
	$(HEAVY) --timeout 1800 tests/deploy

bench: setup-dev ## measures everything against floors of the same run; rewrites docs/performance.md and its curves
	.venv/bin/python bench/run.py

bench-quick: setup-dev ## the same, smaller and shorter
	.venv/bin/python bench/run.py --quick

audit: ## compares the locked dependencies with known vulnerabilities (needs the internet)
	python3 -m venv .audit && .audit/bin/pip install --quiet --require-hashes -r requirements-audit.lock
	.audit/bin/pip-audit --disable-pip --require-hashes -r requirements.lock

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 20

setup:
	@scripts/setup requirements.lock

setup-dev:
	@scripts/setup requirements-dev.lock

clean: ## removes the virtual environment; data stays
	rm -rf .venv
